"""The same rows through every door give the same predictions.

A door is a function: it learns some rows, predicts others, and returns their label sets. A new one is an entry of
`DOORS` (for classifiers) or `TABLE_DOORS` (for taggers). Doors that match columns by name get them in another order.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import feather, parquet
from scipy.sparse import csr_array
from typer.testing import CliRunner

import labelrace
from labelrace.cli.main import app
from labelrace.streams import Dataset, open_stream, write_dataset
from labelrace.streams.demo import demo_tickets

# In alphabetical order, as River takes them: what a model draws at random depends on the order that it learns.
FEATURES, LABELS = ["2", "age", "price", "size", "x9"], ["hot", "new", "uk"]
N_LEARNED, N_ROWS, BATCH = 600, 700, 100
SUFFIXES = [".csv", ".tsv", ".jsonl", ".parquet", ".arrow", ".arff", ".npz", ".csv.gz"]


class Rows(NamedTuple):
    """Features and labels, and the order of the features where they have names."""

    X: Any
    Y: Any
    order: tuple[int, ...] = tuple(range(len(FEATURES)))

    @property
    def names(self):
        return [FEATURES[column] for column in self.order]

    def batches(self):
        return (Rows(self.X[i : i + BATCH], self.Y[i : i + BATCH], self.order) for i in range(0, len(self.X), BATCH))

    def dicts(self):
        return [dict(zip(self.names, row, strict=True)) for row in self.X[:, self.order].tolist()]

    def sets(self):
        return [{LABELS[label] for label in np.flatnonzero(row)} for row in self.Y]

    def write(self, path):
        X, Y = self.X[:, self.order], csr_array(self.Y.astype(np.int8))
        write_dataset(Dataset(X, Y, self.names, LABELS, np.zeros(len(FEATURES), bool), "rows"), path)
        return path


def make_rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N_ROWS, len(FEATURES))).round(3)
    Y = (X @ rng.normal(size=(len(FEATURES), len(LABELS))) > 1).astype(float)
    return Rows(X[:N_LEARNED], Y[:N_LEARNED]), Rows(X[N_LEARNED:], Y[N_LEARNED:], (3, 1, 4, 0, 2))


def new_model(name, **settings):
    return labelrace.make_model(name, random_state=0, **settings) if name == "race" else labelrace.make_model(name)


def learned(name, rows, features, labels):
    model = new_model(name)
    for batch in rows.batches():
        model.partial_fit(features(batch), labels(batch))
    return model


def named(model, X):
    """Return label sets of a model that may not know the labels' names."""
    return [{label if isinstance(label, str) else LABELS[label] for label in row} for row in model.predict_labels(X)]


def in_memory(features, labels, name, learn, ask, folder):
    return named(learned(name, learn, features, labels), features(ask))


def by_frame(name, learn, ask, folder, library="pandas"):
    frames = pytest.importorskip(library)
    # Data frames must have the order that was learned: others are refused.
    model = learned(
        name,
        learn,
        lambda rows: frames.DataFrame(dict(zip(FEATURES, rows.X.T, strict=True))),
        lambda rows: frames.DataFrame(dict(zip(LABELS, rows.Y.T, strict=True))) if library == "pandas" else rows.sets(),
    )
    return named(model, frames.DataFrame(dict(zip(FEATURES, ask.X.T, strict=True))))


def saved(name, learn, ask, folder):
    model = new_model(name)
    for number, batch in enumerate(learn.batches()):
        model.partial_fit(batch.dicts(), batch.sets()).save(folder / f"{number}")
        model = labelrace.load(folder / f"{number}")
    return named(model, ask.dicts())


def by_stream(suffix, name, learn, ask, folder):
    model = new_model(name)
    for X, Y in open_stream(learn.write(folder / f"learned{suffix}")).batches(BATCH):
        model.partial_fit(X, Y)
    # Streams have the order of their file.
    [(X, _)] = open_stream(ask._replace(order=learn.order).write(folder / f"asked{suffix}")).batches(N_ROWS)
    return named(model, X)


def run(*arguments, stdin=""):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], input=stdin, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def listed(text, key="labels"):
    return [set(json.loads(line)[key]) for line in text.splitlines()]


def by_command(suffix, name, learn, ask, folder, *extra):
    source = learn.write(folder / f"learned{suffix}")
    run("train", source, "-o", folder / "model", "-m", name, "--batch-size", BATCH)
    return listed(run("predict", folder / "model", ask.write(folder / f"asked{suffix}"), *extra))


def by_standard_input(as_json, name, learn, ask, folder):
    run("train", learn.write(folder / "learned.csv"), "-o", folder / "model", "-m", name, "--batch-size", BATCH)
    lines = [json.dumps(row) for row in ask.dicts()]
    if not as_json:
        lines = [",".join(ask.names), *(",".join(map(str, row.values())) for row in ask.dicts())]
    return listed(run("predict", folder / "model", "-", stdin="\n".join(lines) + "\n"))


def by_river(name, learn, ask, folder):
    pytest.importorskip("river")
    from labelrace.river import RiverClassifier

    model = RiverClassifier(name, BATCH, seed=0)
    for x, y in zip(learn.dicts(), learn.Y, strict=True):
        model.learn_one(x, dict(zip(LABELS, y > 0, strict=True)))
    return [{label for label, is_there in model.predict_one(x).items() if is_there} for x in ask.dicts()]


@contextmanager
def cluster() -> Iterator[Any]:
    """Yield the client of a cluster of threads in this process."""
    distributed = pytest.importorskip("distributed")
    with distributed.Client(
        processes=False, n_workers=1, threads_per_worker=2, dashboard_address="127.0.0.1:0"
    ) as client:
        yield client


def on_workers(model, source, folder, client):
    from labelrace.distributed import predict

    paths = predict(model, source, out=folder / "predicted", client=client)
    return [set(labels) for path in paths for labels in parquet.read_table(path)["labels"].to_pylist()]


def by_dask(suffix, shares, name, learn, ask, folder):
    """Learn three files, each with its columns in an order of its own."""
    from labelrace.distributed import fit

    third = N_LEARNED // 3
    for number, order in enumerate([learn.order, learn.order[::-1], ask.order]):
        part = slice(number * third, (number + 1) * third)
        Rows(learn.X[part], learn.Y[part], order).write(folder / f"learned-{number}{suffix}")
    settings = {"shares": shares, "rounds": 1, "batch_size": BATCH}
    with cluster() as client:
        model = fit(new_model(name), str(folder / f"learned-*{suffix}"), client=client, **settings)
        return on_workers(model, ask.write(folder / f"asked{suffix}"), folder, client)


def by_dask_predicting(suffix, name, learn, ask, folder):
    run("train", learn.write(folder / "learned.csv"), "-o", folder / "model", "-m", name, "--batch-size", BATCH)
    with cluster() as client:
        return on_workers(labelrace.load(folder / "model"), ask.write(folder / f"asked{suffix}"), folder, client)


def dense(rows):
    return rows.X


Door = Callable[[str, Rows, Rows, Path], list[set[str]]]
DOORS: dict[str, Door] = {
    "sparse": partial(in_memory, lambda rows: csr_array(rows.X), lambda rows: csr_array(rows.Y)),
    "sets": partial(in_memory, dense, Rows.sets),
    "dicts": partial(in_memory, Rows.dicts, Rows.sets),
    "pandas": by_frame,
    "polars": partial(by_frame, library="polars"),
    "saved": saved,
    "river": by_river,
    "standard input, CSV": partial(by_standard_input, False),
    "standard input, JSON lines": partial(by_standard_input, True),
    **{f"stream{suffix}": partial(by_stream, suffix) for suffix in SUFFIXES},
    **{f"command{suffix}": partial(by_command, suffix) for suffix in SUFFIXES},
}
SLOW_DOORS: dict[str, Door] = {
    **{f"Dask predicts{suffix}": partial(by_dask_predicting, suffix) for suffix in (".csv", ".arff", ".npz")},
    "command, a worker": lambda *given: by_command(".csv", *given, "--workers", 1),
}
# Only models that are sums are the same after learning in shares.
SHARED_DOORS: dict[str, Door] = {
    f"Dask, {shares} shares{suffix}": partial(by_dask, suffix, shares)
    for shares, suffix in ((1, ".csv"), (3, ".csv"), (3, ".npz"), (3, ".svm"))
}


def cases() -> list[Any]:
    """List models and doors."""
    quick = [
        pytest.param(model, door, id=f"{model}-{name}") for model in ("obr", "race") for name, door in DOORS.items()
    ]
    processes = [("race", SLOW_DOORS), ("obr", SHARED_DOORS)]
    return quick + [
        pytest.param(model, door, id=f"{model}-{name}", marks=pytest.mark.slow)
        for model, doors in processes
        for name, door in doors.items()
    ]


_expected = dict[str, list[set[str]]]()


def expected(name: str) -> list[set[str]]:
    """Return the label sets by dense arrays."""
    if name not in _expected:
        learn, ask = make_rows()
        _expected[name] = named(learned(name, learn, dense, lambda rows: rows.Y), ask.X)
    return _expected[name]


@pytest.mark.parametrize(("model", "door"), cases())
@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_classifiers(model, door, tmp_path):
    learn, ask = make_rows()
    found = door(model, learn, ask, tmp_path)
    assert found == expected(model)
    assert len(set(map(frozenset, found))) > 3


# Tables: a number, two texts and tags. What is predicted has its columns in another order, and no tags.
TICKETS = demo_tickets(400)
LEARNED, ASKED = TICKETS[:300], [{name: row[name] for name in ("body", "ticket", "subject")} for row in TICKETS[300:]]
Table = list[dict[str, Any]]


def columns_of(rows: Table) -> dict[str, list[Any]]:
    return {name: [row[name] for row in rows] for name in rows[0]}


def as_pandas(rows: Table) -> Any:
    return pytest.importorskip("pandas").DataFrame(rows)


def as_polars(rows: Table) -> Any:
    return pytest.importorskip("polars").DataFrame(rows)


def table_file(suffix: str, path: Path, rows: Table) -> Path:
    path = path.with_suffix(suffix)
    if suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    elif suffix == ".parquet":
        parquet.write_table(pa.Table.from_pylist(rows), path, row_group_size=BATCH)
    elif suffix == ".xlsx":
        book = pytest.importorskip("openpyxl").Workbook()
        book.active.append(list(rows[0]))
        for row in rows:
            book.active.append([";".join(cell) if isinstance(cell, list) else cell for cell in row.values()])
        book.save(path)
    elif suffix == ".arrow":
        feather.write_feather(pa.Table.from_pylist(rows), path)
    else:
        with path.open("w", newline="") as file:
            writer = csv.writer(file, delimiter="\t" if suffix == ".tsv" else ",")
            writer.writerow(rows[0])
            writer.writerows(
                [";".join(cell) if isinstance(cell, list) else cell for cell in row.values()] for row in rows
            )
    return path


def new_tagger(model="race"):
    return labelrace.Tagger("tags", model=model, random_state=0, batch_size=BATCH)


def tags_by(form, folder):
    return new_tagger().fit(form(LEARNED)).predict(form(ASKED))


def tags_by_file(suffix, folder):
    learned_file, asked_file = (
        table_file(suffix, folder / name, rows) for name, rows in (("learned", LEARNED), ("asked", ASKED))
    )
    return new_tagger().fit(learned_file).predict(asked_file)


def tags_saved(folder):
    tagger = new_tagger()
    for first in range(0, len(LEARNED), BATCH):
        tagger.partial_fit(LEARNED[first : first + BATCH]).save(folder / "tagger")
        tagger = labelrace.load(folder / "tagger")
    return tagger.predict(ASKED)


def train_by_command(suffix, folder):
    source = table_file(suffix, folder / "learned", LEARNED)
    run("train", source, "--tags", "tags", "-o", folder / "tagger", "--batch-size", BATCH)
    return folder / "tagger"


def tags_by_command(suffix, folder):
    tagger = train_by_command(suffix, folder)
    return listed(run("predict", tagger, table_file(suffix, folder / "asked", ASKED)), "tags")


def tags_by_standard_input(suffix, folder):
    tagger, asked = train_by_command(suffix, folder), table_file(suffix, folder / "asked", ASKED)
    return listed(run("predict", tagger, "-", stdin=asked.read_text()), "tags")


def tags_on_workers(suffix, folder):
    with cluster() as client:
        return on_workers(new_tagger().fit(LEARNED), table_file(suffix, folder / "asked", ASKED), folder, client)


@contextmanager
def service(folder: Path) -> Iterator[Any]:
    """Yield a service that begins from nothing, with the settings of the other doors."""
    opened = pytest.importorskip("labelrace.serve.service").open_service(
        folder / "journal", new={"tags": "tags", "model": "race", "random_state": 0, "batch_size": BATCH}
    )
    try:
        yield opened
    finally:
        opened.close()


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Yield the address of a service."""
    from helpers.http import listening

    with service(folder) as opened, listening(opened) as port:
        yield f"http://127.0.0.1:{port}"


def batches_of(rows: Table) -> Iterator[Table]:
    """Yield batches; each request is one for the service."""
    return (rows[first : first + BATCH] for first in range(0, len(rows), BATCH))


def tags_by_service(folder):
    from labelrace.serve.lessons import Lesson, Prediction

    with service(folder) as opened:
        for rows in batches_of(LEARNED):
            opened.teach([Lesson("learn", {"rows": rows})])
        [answer] = opened.predict([Prediction(ASKED)])
        return [set(row["tags"]) for row in answer["rows"]]


def tags_by_http(folder):
    """Learn rows with ids, and predict after a further start from the journal."""
    import httpx

    ids = [{"id": f"T-{number}"} for number in range(len(LEARNED))]
    with served(folder) as url, httpx.Client(base_url=url) as http:
        for rows, named in zip(batches_of(LEARNED), batches_of(ids), strict=True):
            cells = [{"id": one["id"], **row} for one, row in zip(named, rows, strict=True)]
            http.post("/v1/learn", json={"rows": cells}).raise_for_status()
    with served(folder) as url:
        answer = httpx.post(f"{url}/v1/predict", json={"rows": ASKED}).json()
        return [set(row["tags"]) for row in answer["rows"]]


def tags_by_client(form, folder):
    with served(folder) as url, labelrace.Client(url) as client:
        for rows in batches_of(LEARNED):
            client.learn(form(rows))
        return [set(row["tags"]) for row in client.predict(form(ASKED))]


FILES = [".csv", ".tsv", ".xlsx", ".jsonl", ".parquet", ".arrow"]
TABLE_DOORS: dict[str, Callable[[Path], list[set[str]]]] = {
    "columns": partial(tags_by, columns_of),
    "pandas": partial(tags_by, as_pandas),
    "polars": partial(tags_by, as_polars),
    "arrow": partial(tags_by, pa.Table.from_pylist),
    "saved": tags_saved,
    **{f"file{suffix}": partial(tags_by_file, suffix) for suffix in FILES},
    **{f"command{suffix}": partial(tags_by_command, suffix) for suffix in FILES},
    **{f"standard input{suffix}": partial(tags_by_standard_input, suffix) for suffix in (".csv", ".jsonl")},
    "service": tags_by_service,
    "service, HTTP": tags_by_http,
    "client": partial(tags_by_client, list),
    "client, pandas": partial(tags_by_client, as_pandas),
    "client, polars": partial(tags_by_client, as_polars),
    "client, arrow": partial(tags_by_client, pa.Table.from_pylist),
}
SLOW_TABLE_DOORS = {f"Dask{suffix}": partial(tags_on_workers, suffix) for suffix in (".csv", ".parquet")}


@pytest.mark.parametrize(
    "door",
    [
        *(pytest.param(door, id=name) for name, door in TABLE_DOORS.items()),
        *(pytest.param(door, id=name, marks=pytest.mark.slow) for name, door in SLOW_TABLE_DOORS.items()),
    ],
)
def test_taggers(door, tmp_path):
    found = door(tmp_path)
    assert found == tags_by(list, tmp_path)
    assert len(set(map(frozenset, found))) > 3


# Cells of every kind, some of them missing, as each library has them.
def mixed_rows() -> Table:
    rng = np.random.default_rng(5)
    rows = []
    for number in range(260):
        kind, flag, price = rng.choice(["new", "used", "for parts"]), bool(rng.random() < 0.5), rng.normal(50, 20)
        tags = [kind[:3]] + ["hot"] * flag + ["dear"] * bool(price > 60)
        row = {
            "kind": str(kind),
            "flag": flag,
            "price": round(price, 2),
            "count": int(rng.integers(0, 4)),
            "code": f"{rng.integers(0, 9):03}",
            "when": datetime(2024, 1, 1) + timedelta(days=int(rng.integers(0, 300)), hours=int(rng.integers(0, 24))),
            "parts": [
                str(part) for part in rng.choice(["door", "grill", "fan"], size=rng.integers(1, 3), replace=False)
            ],
            "title": f"{'warm' if flag else 'cold'} oven {number % 7}",
            "tags": tags,
        }
        for name in ("kind", "price", "when", "title"):
            if rng.random() < 0.1:
                row[name] = None
        rows.append(row)
    return rows


def with_nan(rows: Table) -> Table:
    return [row | {"price": float("nan")} if row["price"] is None else row for row in rows]


def without_missing(rows: Table) -> Table:
    return [{name: cell for name, cell in row.items() if cell is not None} for row in rows]


@pytest.mark.parametrize("form", [list, with_nan, without_missing, as_pandas, pa.Table.from_pylist])
def test_cells_of_every_kind_by_the_client(form, tmp_path):
    """The probabilities by the client are those of a tagger that is given the same table."""
    rows = mixed_rows()
    learn, ask = rows[:200], [{name: row[name] for name in row if name != "tags"} for row in rows[200:]]
    tagger = new_tagger()
    with served(tmp_path) as url, labelrace.Client(url) as client:
        for batch in batches_of(learn):
            tagger.prequential_fit(as_pandas(batch))
            client.learn(form(batch))
        found = client.predict(form(ask))
    expected = tagger.rank(as_pandas(ask), 10)
    for row, one in zip(found, expected, strict=True):
        assert row["tags"] == list(one.tags)
        assert row["probabilities"] == pytest.approx(dict(one.likely), abs=1e-4)
    assert len({frozenset(row["tags"]) for row in found}) > 3
