"""``labelrace predict``: predict labels or tags with a saved model."""

from __future__ import annotations

import csv
import io
import itertools
import json
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO, TypeAlias

import typer

from labelrace.base.files import atomic_file
from labelrace.cli import options
from labelrace.cli.messages import standard_input, standard_output
from labelrace.cli.tagging import tables_of
from labelrace.cli.workers import Workers, predict_on_workers

if TYPE_CHECKING:
    from labelrace.tables import Tagger
    from labelrace.tables.read import Table

# The rows of a batch as they are written: cells by the names of their columns.
_Rows: TypeAlias = list[dict[str, Any]]


def predict(
    model_file: options.ModelFile,
    source: Annotated[str, options.argument(help="A data file; '-' reads JSON lines or CSV from standard input.")],
    out: Annotated[
        Path | None,
        options.option("--out", "-o", help="A .csv or .jsonl file to write; by default JSON lines are printed."),
    ] = None,
    top: Annotated[
        int | None, options.option(help="Write this many labels, the most likely ones, with their probabilities.")
    ] = None,
    labels: options.Labels = None,
    batch_size: Annotated[int, typer.Option(help="Rows predicted at once.")] = 500,
    delimiter: options.Delimiter = None,
    workers: options.Workers = None,
    scheduler: options.Scheduler = None,
) -> None:
    """Predict labels or tags with a saved model.

    [dim]Examples:[/dim]

    labelrace predict tagger.labelrace new.csv -o out.csv

    labelrace predict enron.safetensors new.arff -o predicted.csv

    cat rows.jsonl | labelrace predict enron.safetensors - --top 5
    """
    from labelrace.base.state_file import load
    from labelrace.tables import Tagger

    if top is not None and top < 1:
        raise ValueError(f"--top must be a whole number of at least 1, got {top}.")
    if out is not None and out.suffix.lower() not in (".csv", ".jsonl"):
        raise ValueError(f"--out must end in .csv or .jsonl, got {out}.")
    if out is None:
        standard_output()  # refused before the model is loaded
    else:
        options.check_out(out, model_file, source, labels)
    model, given = load(model_file), options.as_labels(labels)
    as_csv = out is not None and out.suffix.lower() == ".csv"
    if where := Workers(workers, scheduler):
        settings = {"batch_size": batch_size, "labels": given}
        predicted = predict_on_workers(model, source, where, top=top, as_csv=as_csv, **settings)
    elif isinstance(model, Tagger):
        predicted = tag_rows(model, tables_of(source, batch_size, delimiter), top=top, as_csv=as_csv)
    else:
        predicted = label_rows(model, _matrices(model, source, given, batch_size, delimiter), top)
    if out is None:
        _write(predicted, standard_output(), as_csv=False)
        return
    with atomic_file(out) as binary:
        text = io.TextIOWrapper(binary, encoding="utf-8", newline="")
        _write(predicted, text, as_csv=as_csv)
        text.detach()


def _matrices(model: Any, source: str, labels: Any, batch_size: int, delimiter: str | None) -> Iterator[Any]:
    """Yield the features of a file or of standard input, in the order of the model's."""
    from labelrace.streams.column_matching import features_of, open_matched, text_rows

    # A model may have learned from data frames; rows have their features in its order, but not their names.
    warnings.filterwarnings("ignore", "X does not have valid feature names")
    if source == "-":
        return text_rows(standard_input(), features_of(model), batch_size, delimiter or ",")
    return (X for X, _ in open_matched(features_of(model), source, labels).batches(batch_size))


def label_rows(model: Any, batches: Iterator[Any], top: int | None) -> Iterator[_Rows]:
    """Yield for each row of a batch its number and labels; with `top`, the most likely and their probabilities."""
    number = itertools.count()
    names = model.classes_.tolist() if model.label_names_ is None else list(model.label_names_)
    order = {name: column for column, name in enumerate(names)}
    for X in batches:
        if top is None:
            predicted = (sorted(labels, key=order.__getitem__) for labels in model.predict_labels(X))
            yield [{"row": next(number), "labels": list(map(str, labels))} for labels in predicted]
        else:
            yield [
                {
                    "row": next(number),
                    "labels": [str(label) for label, _ in pairs],
                    "probabilities": [float(f"{probability:.6g}") for _, probability in pairs],
                }
                for pairs in model.predict_top(X, top)
            ]


def tag_rows(tagger: Tagger, tables: Iterator[Table], *, top: int | None, as_csv: bool) -> Iterator[_Rows]:
    """Yield for each row of a batch its identifiers (or its number), tags and their probabilities."""
    from labelrace.tables import join_tags
    from labelrace.tables.cells import as_texts, one_form

    identifiers = [column.name for column in tagger.columns_ if column.kind == "identifier"]
    name, number = tagger.tags if isinstance(tagger.tags, str) else "tags", itertools.count()
    for table in tables:
        ids = {
            column: list(map(one_form, as_texts(table.columns[column])))
            for column in identifiers
            if column in table.columns
        }
        predicted = tagger.predict_scored(table) if top is None else map(dict, tagger.predict_top(table, top))
        rows = []
        for i, tags in enumerate(predicted):
            cells: dict[str, Any] = {column: texts[i] for column, texts in ids.items()} or {"row": next(number)}
            probabilities = [float(f"{probability:.4g}") for probability in tags.values()]
            cells[name] = join_tags(tags, tagger.separator_) if as_csv else list(tags)
            rows.append(cells | {"probabilities": probabilities})
        yield rows


def _write(batches: Iterator[_Rows], file: TextIO, *, as_csv: bool) -> None:
    """Write batch by batch, so that a reader need not wait: JSON lines, or CSV with semicolons between list items."""
    from labelrace.report.text import escape_formula

    writer = csv.writer(file)
    for number, rows in enumerate(batches):
        if as_csv and number == 0:
            writer.writerow(map(escape_formula, rows[0]))
        for row in rows:
            if as_csv:
                cells = [";".join(map(str, cell)) if isinstance(cell, list) else cell for cell in row.values()]
                writer.writerow(map(escape_formula, cells))
            else:
                file.write(json.dumps(row) + "\n")
        file.flush()
