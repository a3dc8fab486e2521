"""One pass against batch: how well models rank that learn each row once, and those that go through all rows often.

The first three quarters of the rows are learned, the last quarter is ranked; a dataset whose files are a training and a
test part (``eurlex_train.txt``, ``eurlex_test.txt``) keeps them. Rows of datasets are in random order, as that of some
files, sorted by topic, leaves nothing to learn for the last quarter; rows of a CSV table of text are in their own. All
get the same matrix: sparse rows of length one, or dense columns with a deviation of one; of texts TF-IDF, by the rows
learned. Online models learn batches of 500 rows, each ranked before it is learned, too.

Each method runs in a process of its own, one thread, so that processor time and peak of memory are the method's.
"""

from __future__ import annotations

import importlib
import os
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from multiprocessing import get_context
from pathlib import Path
from resource import RUSAGE_SELF, getrusage
from typing import Annotated, Any, NamedTuple

import numpy as np
import scipy.sparse
import typer
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import MultiLabelBinarizer, StandardScaler, normalize
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from benchmarks.datasets import find_datasets
from benchmarks.extreme import LabelTree, best_labels, records_table, size_of
from benchmarks.plan import RUNS, Data, Out, Record, publish
from benchmarks.rivals import row_dicts, vowpal_lines
from benchmarks.timing import batches
from labelrace import __version__, load_dataset, make_model
from labelrace.cli.options import argument, as_names, option
from labelrace.evaluation.checkpoint import padded
from labelrace.measures import evaluate
from labelrace.report.document import Document, Section
from labelrace.report.text import as_bytes, as_significant, as_value
from labelrace.tables.text import strip_html
from labelrace.typing import AnyMatrix, IntArray

_BATCH, _BEST, _BITS = 500, 5, 24
_MEASURES = ("precision_at_1", "precision_at_3", "precision_at_5", "ndcg_at_5")
# Values of C, those first that are most often good: where time is short, the others are left out.
_ONE_VS_REST: dict[str, tuple[Any, tuple[float, ...]]] = {
    "LinearSVC": (partial(LinearSVC, random_state=0), (1.0, 0.3, 0.1, 3.0, 0.03, 10.0)),
    "logistic regression": (partial(LogisticRegression, max_iter=300), (10.0, 3.0, 1.0, 30.0, 0.3, 0.1)),
}
_PACKAGES = ("vowpalwabbit", "omikuji", "napkinxc")
# Columns of the table, and how their numbers are written.
_COLUMNS: dict[str, tuple[str, Callable[[float | None], str]]] = {
    **{f"P@{k}": (f"precision_at_{k}", partial(as_value, decimals=3)) for k in (1, 3, 5)},
    "nDCG@5": ("ndcg_at_5", partial(as_value, decimals=3)),
    "P@1 on the way": ("before_precision_at_1", partial(as_value, decimals=3)),
    "nDCG@5 on the way": ("before_ndcg_at_5", partial(as_value, decimals=3)),
    "Learning (s)": ("seconds", as_significant),
    "Ranking (s)": ("ranking_seconds", as_significant),
    "Model": ("bytes", as_bytes),
    "Peak": ("peak_bytes", as_bytes),
}


class Split(NamedTuple):
    """Rows to learn, and rows to rank."""

    name: str
    X: AnyMatrix
    Y: AnyMatrix
    X_ranked: AnyMatrix
    Y_ranked: AnyMatrix


class Learned(NamedTuple):
    """What a method gives: the best labels of rows, the bytes of its model, and seconds that were not for learning."""

    top: Callable[[AnyMatrix], IntArray]
    size: Callable[[], float]
    beside: float = 0.0
    before: Mapping[str, float] = {}  # measures of rows ranked before they were learned


# Learns rows and labels; the folder is for its files.
Method = Callable[[AnyMatrix, AnyMatrix, Path], Learned]


def one_pass(make: Callable[[], Any], X: AnyMatrix, Y: AnyMatrix, folder: Path) -> Learned:
    """Learn each row once, in batches, each ranked beforehand."""
    model, beside, lists = make(), 0.0, list[IntArray]()
    for number, (x, y) in enumerate(batches(X, Y, _BATCH)):
        if number:
            start = time.process_time()
            lists.append(best_labels(model, x))
            beside += time.process_time() - start
        model.partial_fit(x, y)
    before = evaluate(Y[_BATCH:], top=np.vstack(lists), measures=_MEASURES) if lists else {}
    return Learned(partial(best_labels, model), partial(size_of, model), beside, before)


def one_vs_rest(make: Callable[[], Any], limit: float, X: AnyMatrix, Y: AnyMatrix, folder: Path) -> Learned:
    """Fit a linear model for each label; a TimeoutError if all would take more seconds than the limit."""
    start, columns = time.process_time(), scipy.sparse.csc_array(Y)
    weights, intercepts = np.zeros((X.shape[1], Y.shape[1]), np.float32), np.zeros(Y.shape[1], np.float32)
    for label in range(Y.shape[1]):
        present = columns[:, [label]].toarray().ravel() > 0
        if len(np.unique(present)) == 1:
            intercepts[label] = np.inf if present[0] else -np.inf
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = make().fit(X, present)
        weights[:, label], intercepts[label] = model.coef_[0], model.intercept_[0]
        spent = time.process_time() - start
        if spent > limit / 20 and (expected := spent * Y.shape[1] / (label + 1)) > limit:
            raise TimeoutError(f"it would take about {expected / 60:.0f} minutes")

    def top(X: AnyMatrix) -> IntArray:
        parts = (X[i : i + _BATCH] @ weights + intercepts for i in range(0, X.shape[0], _BATCH))
        return np.vstack([np.argsort(-part, axis=1, kind="stable")[:, :_BEST] for part in parts])

    return Learned(top, lambda: float(weights.nbytes + intercepts.nbytes))


def omikuji(settings: Mapping[str, Any], X: AnyMatrix, Y: AnyMatrix, folder: Path) -> Learned:
    """Train omikuji's label trees, on a file of the rows that have features and labels: it refuses others."""
    from omikuji import Model

    start, file = time.process_time(), folder / "train.txt"
    lines = [line.replace(" | ", " ", 1) for line in vowpal_lines(X, Y)]
    lines = [line for line in lines if line[0] != " " and line[-1] != " "]
    file.write_text("\n".join([f"{len(lines)} {X.shape[1]} {Y.shape[1]}", *lines, ""]))
    beside, given = time.process_time() - start, Model.default_hyper_param()
    for name, value in settings.items():
        setattr(given, name, value)
    model = Model.train_on_data(str(file), given, n_threads=1)
    model.init_prediction_thread_pool(1)

    def top(X: AnyMatrix) -> IntArray:
        lists = (model.predict(list(row.items()), top_k=_BEST) for row in row_dicts(X))
        return padded([[label for label, _ in row] for row in lists], _BEST)

    def size() -> float:
        model.save(str(folder / "model"))
        return folder_size(folder / "model")

    return Learned(top, size, beside)


def napkinxc(X: AnyMatrix, Y: AnyMatrix, folder: Path) -> Learned:
    """Train napkinXC's probabilistic label tree, all defaults."""
    from napkinxc.models import PLT

    model = PLT(str(folder / "model"), threads=1, seed=0)
    model.fit(scipy.sparse.csr_matrix(X), [list(row) for row in row_dicts(Y)])
    return Learned(
        lambda X: padded(model.predict(scipy.sparse.csr_matrix(X), top_k=_BEST), _BEST),
        lambda: folder_size(folder / "model"),
    )


def folder_size(folder: Path) -> float:
    """Add up the bytes of the files in a folder."""
    return float(sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()))


def methods(budgets: Sequence[str], n_labels: int, limit: float) -> dict[str, dict[str, Method]]:
    """Return the methods that can run, by name; each with its settings, of which the best is shown."""
    memory: dict[str, dict[str, str]] = {"race": {}, **{f"race, {size}": {"max_memory": size} for size in budgets}}
    found: dict[str, dict[str, Method]] = {
        "most frequent labels": {"": partial(one_pass, partial(make_model, "majority"))},
        **{
            name: {"": partial(one_pass, partial(make_model, "race", random_state=0, **m))}
            for name, m in memory.items()
        },
    }
    if find_spec("vowpalwabbit"):
        found[f"Vowpal Wabbit --plt, 2^{_BITS}"] = {"": partial(one_pass, partial(LabelTree, _BITS, n_labels))}
    if find_spec("omikuji"):
        bonsai = {"cluster_balanced": False, "cluster_k": 100, "max_depth": 3}
        found["omikuji, Parabel"] = {"": partial(omikuji, {})}
        found["omikuji, Bonsai"] = {"": partial(omikuji, bonsai)}
    if find_spec("napkinxc"):
        found["napkinXC, PLT"] = {"": napkinxc}
    for name, (make, grid) in _ONE_VS_REST.items():
        found[name] = {f"C = {C:g}": partial(one_vs_rest, partial(make, C=C), limit) for C in grid}
    return found


def measured(method: Method, split: Split) -> Record:
    """Learn and rank; return measures, processor times, and the peak of memory above what there was before."""
    peak, start = _peak(), time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        try:
            learned = method(split.X, split.Y, Path(folder))
        except Exception as error:
            return {"error": str(error).rstrip(".") or type(error).__name__}
        spent, start = time.process_time() - start - learned.beside, time.process_time()
        top = learned.top(split.X_ranked)
        return {
            **evaluate(split.Y_ranked, top=top, measures=_MEASURES),
            **{f"before_{name}": learned.before.get(name) for name in _MEASURES},
            "seconds": spent,
            "ranking_seconds": time.process_time() - start,
            "peak_bytes": _peak() - peak,
            "bytes": learned.size(),
            "error": "",
        }


def _peak() -> float:
    return 1024.0 * getrusage(RUSAGE_SELF).ru_maxrss


def apart(call: Callable[[], Record]) -> Record:
    """Call in a process of its own, which shares what there is in memory, and whose output is dropped."""
    context = get_context("fork")
    receiver, sender = context.Pipe(duplex=False)

    def answer() -> None:
        with open(os.devnull, "w") as nowhere:
            os.dup2(nowhere.fileno(), 1)
            os.dup2(nowhere.fileno(), 2)
        sender.send(call())

    child = context.Process(target=answer)
    child.start()
    sender.close()
    try:
        record: Record = receiver.recv()
    except EOFError:
        record = {"error": "its process failed"}
    child.join()
    return record


def batch(
    datasets: Annotated[
        list[str] | None,
        argument(help="Datasets, or CSV tables with title, content and tags; by default all datasets."),
    ] = None,
    budget: Annotated[list[str] | None, option(help="Another max_memory of race, such as 40MB; repeatable.")] = None,
    only: Annotated[str | None, option("--methods", help="Names, or how they begin, separated by commas.")] = None,
    seconds: Annotated[
        float, typer.Option(help="Seconds of one-vs-rest on a dataset: settings that take longer are left out.")
    ] = 1200.0,
    in_order: Annotated[bool, typer.Option("--in-order", help="Keep the order of the files.")] = False,
    data: Data = None,
    out: Out = RUNS / "batch",
) -> None:
    """Compare one pass with batch learners, by ranking.

    The best C of one-vs-rest is chosen afterwards, by the rows ranked. Other systems are compared where `python -m
    benchmarks rivals` has installed them.

    [dim]Examples:[/dim]

    python -m benchmarks batch enron delicious cooking.csv.gz

    python -m benchmarks batch eurlex-4k --budget 40MB --budget 20MB --budget 10MB --methods race
    """
    missing = ", ".join(name for name in _PACKAGES if find_spec(name) is None)
    notes = [f"Not compared: {missing}. `python -m benchmarks rivals` installs them."] if missing else []
    # Compiles the loops of compressed labels, or loads them, so that no model's time includes it.
    for module in ("classifier", "compress"):
        importlib.import_module(f"labelrace.extreme.{module}")
    records: list[Record] = []
    with threadpool_limits(limits=1):
        for split in _splits(datasets or (), data or (), in_order):
            about = {"stream": split.name, "rows": split.X.shape[0], "labels": split.Y.shape[1]}
            for name, settings in methods(budget or (), split.Y.shape[1], seconds).items():
                if not only or name.startswith(tuple(as_names(only))):
                    tried = list(_tried(split, name, settings, seconds))
                    notes += [f"{name} is left out on {split.name}: {one['error']}." for one in tried if one["error"]]
                    records += [{**about, "method": name, **one} for one in tried if not one["error"]]
    publish(batch_document(records, notes), out)


def _tried(split: Split, name: str, settings: Mapping[str, Method], limit: float) -> Iterator[Record]:
    """Run a method with one setting after the other, until another would exceed the limit."""
    spent = 0.0
    for number, (setting, method) in enumerate(settings.items(), 1):
        record = apart(partial(measured, method, split))
        told = record["error"] or "nDCG@5 {ndcg_at_5:.3f}, {seconds:.3g} s".format(**record)
        print(" ".join(filter(None, [f"{split.name}:", name, setting])) + f": {told}", file=sys.stderr, flush=True)
        yield {"setting": setting, **record}
        spent += record.get("seconds", limit)
        if spent * (number + 1) / number > limit:
            return


def _splits(names: Sequence[str], folders: Sequence[Path], in_order: bool) -> Iterator[Split]:
    tables = [name for name in names if name.endswith((".csv", ".csv.gz"))]
    others = [name for name in names if name not in tables]
    sources = find_datasets(folders, others).sources if others or not tables else []
    parts = {source.data: source.data.with_name(source.data.name.replace("train", "test")) for source in sources}
    for source in sources:
        part = parts[source.data]
        if source.data in (other for file, other in parts.items() if file != other):
            continue
        X, Y = _matrices(source.data, source.labels)
        if not in_order:
            order = np.random.default_rng(0).permutation(X.shape[0])
            X, Y = X[order], Y[order]
        if part != source.data and part.is_file():
            yield _scaled(Split(source.name.replace("_train", ""), X, Y, *_matrices(part, source.labels)))
        else:
            n = X.shape[0] * 3 // 4
            yield _scaled(Split(source.name, X[:n], Y[:n], X[n:], Y[n:]))
    yield from map(text_split, tables)


def _matrices(file: Path, labels: Path | None) -> tuple[AnyMatrix, AnyMatrix]:
    loaded = load_dataset(str(file), labels=labels)
    return loaded.X.astype(float), scipy.sparse.csr_array(loaded.Y).astype(float)


def _scaled(split: Split) -> Split:
    if scipy.sparse.issparse(split.X):
        X, X_ranked = (_rows(normalize(part)) for part in (split.X, split.X_ranked))
    else:
        scaler = StandardScaler().fit(split.X)
        X, X_ranked = scaler.transform(split.X), scaler.transform(split.X_ranked)
    return split._replace(X=X, X_ranked=X_ranked)


def _rows(X: AnyMatrix) -> AnyMatrix:
    """Return sparse rows with the short indices that scikit-learn wants."""
    X = scipy.sparse.csr_array(X)
    return scipy.sparse.csr_array((X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32)), shape=X.shape)


def text_split(path: str) -> Split:
    """Read a table with title, content and tags; words that three rows have are weighted by TF-IDF."""
    import pandas as pd

    table = pd.read_csv(path, keep_default_na=False)
    texts = [strip_html(text) for text in table["title"] + " " + table["content"]]
    Y = scipy.sparse.csr_array(MultiLabelBinarizer(sparse_output=True).fit_transform(table["tags"].str.split()))
    n = len(texts) * 3 // 4
    weights = TfidfVectorizer(sublinear_tf=True, min_df=3, stop_words="english").fit(texts[:n])
    X, X_ranked = (_rows(weights.transform(part)) for part in (texts[:n], texts[n:]))
    return Split(Path(path).name.partition(".")[0], X, Y[:n].astype(float), X_ranked, Y[n:].astype(float))


def batch_document(records: Sequence[Record], notes: list[str]) -> Document:
    """Return a table of all methods, of those with a grid the setting with the best nDCG@5."""
    tried: dict[tuple[str, str], list[Record]] = {}
    for record in records:
        tried.setdefault((record["stream"], record["method"]), []).append(record)
    by_stream: dict[str, list[Record]] = {}
    for (stream, method), of in tried.items():
        best = max(of, key=lambda record: record["ndcg_at_5"])
        shown = f"{method}, {best['setting']}, best of {len(of)}" if best["setting"] else method
        by_stream.setdefault(stream, []).append({**best, "method": shown})
    hint = (
        "Rows ranked after all others were learned; 'on the way' are rows ranked before they were learned, by models "
        "that learn each row once. Times are processor times of one thread, of the setting shown; the model is the "
        "size of its file (16 bytes for each weight of Vowpal Wabbit, four for each of one-vs-rest); the peak is "
        "what the process took above the data, copies of the data in other forms included."
    )
    table = records_table("batch", "One pass against batch.", _COLUMNS, by_stream, lower=tuple(_COLUMNS)[6:])
    return Document(
        name="batch",
        title="One pass against batch",
        lead="Learning each row once, beside learners that go through all rows many times.",
        footer=f"Made by labelrace {__version__}.",
        sections=[Section("Ranking, time and memory", hint, [table])],
        records={"batch": list(records)},
        notes=notes,
    )
