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
from labelrace.base.formulas import escape_formula
from labelrace.base.table_formats import WRITTEN as FORMATS
from labelrace.cli import options
from labelrace.cli.messages import number_of, say, standard_input, standard_output
from labelrace.cli.tagging import tables_of, tell_bad_rows
from labelrace.cli.workers import Workers, predict_on_workers

if TYPE_CHECKING:
    from labelrace.streams.table_sources import CsvForm, Reading
    from labelrace.tables import Tagger
    from labelrace.tables.read import Table

# The rows of a batch to write: cells by the names of their columns.
_Rows: TypeAlias = list[dict[str, Any]]


@options.takes_reading
def predict(
    model_file: options.ModelFile,
    source: Annotated[str, options.argument(help="A data file; '-' reads JSON lines or CSV from standard input.")],
    out: Annotated[
        Path | None,
        options.option(
            "--out",
            "-o",
            help=f"The file to write: {', '.join(FORMATS)} for a tagger, .csv or .jsonl for other models; by default "
            "JSON lines are printed.",
        ),
    ] = None,
    top: Annotated[
        int | None,
        options.option(
            help="Write this many labels, the most likely ones, with their probabilities; a tagger writes them beside "
            "the tags, as top and top_probabilities."
        ),
    ] = None,
    precision: Annotated[
        float | None,
        options.option(
            help="Of a tagger: give only tags whose precision on recent rows is at least this, such as 0.9; see "
            "'review'."
        ),
    ] = None,
    min_probability: Annotated[
        float | None, options.option(help="Of a tagger: give only tags of at least this probability.")
    ] = None,
    bom: Annotated[
        bool, typer.Option("--bom", help="Begin CSV with a byte order mark, so that Excel reads it as UTF-8.")
    ] = False,
    labels: options.Labels = None,
    batch_size: Annotated[int, typer.Option(help="Rows predicted at once.")] = 500,
    embed: options.Embed = None,
    workers: options.Workers = None,
    scheduler: options.Scheduler = None,
    reading: Any = None,
) -> None:
    """Predict labels or tags with a saved model.

    A tagger writes the table as it is, with its tags, their probabilities, and whether a person should look at the row
    (review). Correct the tags, and give that file to the command update.

    [dim]Examples:[/dim]

    labelrace predict tagger.labelrace new.csv -o out.csv --precision 0.9

    labelrace predict enron.safetensors new.arff -o predicted.csv

    cat rows.jsonl | labelrace predict enron.safetensors - --top 5
    """
    from labelrace.base.state_file import load
    from labelrace.delayed import DelayedLabels
    from labelrace.tables import Tagger

    if top is not None and top < 1:
        raise ValueError(f"--top must be a whole number of at least 1, got {top}.")
    suffix = ".jsonl" if out is None else out.suffix.lower()
    if suffix not in FORMATS:
        kinds = f"{', '.join(FORMATS)} for a tagger, .csv or .jsonl for other models"
        raise ValueError(f"--out must end in {kinds}, got {out}.")
    if bom and suffix not in (".csv", ".tsv"):
        raise ValueError(f"--bom is for files that end in .csv or .tsv, got {out or 'none'}.")
    if out is None:
        standard_output()  # refused before the model is loaded
    else:
        options.check_out(out, model_file, source, labels)
    found, given = load(model_file, embed=options.as_folders(embed)), options.as_labels(labels)
    model: Any = found.model if isinstance(found, DelayedLabels) else found
    where, settings = Workers(workers, scheduler), {"batch_size": batch_size, "labels": given, "top": top}
    where.check([source], reading)
    if isinstance(model, Tagger):
        _set_wanted(model, precision, min_probability)
        _predict_tags(model, source, out, suffix, bom, where, reading, **settings)
        return
    if precision is not None or min_probability is not None:
        raise ValueError("--precision and --min-probability are for taggers: leave them out, or give --top.")
    if suffix not in (".csv", ".jsonl"):
        raise ValueError(f"--out must end in .csv or .jsonl for a model that is no tagger, got {out}.")
    # Rows of standard input may have any delimiter; everything else is for tables.
    if refused := options.given_of(reading._replace(delimiter=None) if source == "-" else reading):
        raise ValueError(f"{' and '.join(refused)} must be for a tagger, got a model that is none: leave it out.")
    _predict_labels(model, source, out, suffix, bom, where, reading.delimiter, **settings)


def _predict_tags(
    tagger: Tagger,
    source: str,
    out: Path | None,
    suffix: str,
    bom: bool,
    where: Workers,
    reading: Reading,
    *,
    batch_size: int,
    labels: Any,
    top: int | None,
) -> None:
    """Write a table with the tags of its rows."""
    from labelrace.streams.table_sources import CsvForm, csv_form

    if where:
        tables = predict_on_workers(tagger, source, where, top=top, suffix=suffix, batch_size=batch_size, labels=labels)
    else:
        tables = tag_tables(tagger, tables_of(source, batch_size, reading), top=top, suffix=suffix)
    form = CsvForm() if source == "-" else csv_form(Path(source), reading)
    _write_tables(tagger, tables, out, suffix, form._replace(bom=bom or form.bom))
    tell_bad_rows(reading.on_bad_row)


def _predict_labels(
    model: Any,
    source: str,
    out: Path | None,
    suffix: str,
    bom: bool,
    where: Workers,
    delimiter: str | None,
    *,
    batch_size: int,
    labels: Any,
    top: int | None,
) -> None:
    """Write the number and the labels of each row."""
    if where:
        predicted = predict_on_workers(
            model, source, where, top=top, suffix=suffix, batch_size=batch_size, labels=labels
        )
    else:
        predicted = label_rows(model, _matrices(model, source, labels, batch_size, delimiter), top)
    if out is None:
        _write(predicted, standard_output(), as_csv=False)
        return
    with atomic_file(out) as binary:
        text = io.TextIOWrapper(binary, encoding="utf-8-sig" if bom else "utf-8", newline="")
        _write(predicted, text, as_csv=suffix == ".csv")
        text.detach()


def _set_wanted(tagger: Tagger, precision: float | None, min_probability: float | None) -> None:
    """Set the target precision and the least probability, and warn if no tag can reach the precision."""
    from labelrace.base.parameters import check_number
    from labelrace.tables.suggestions import least_confidence

    for name, value in (("precision", precision), ("min_probability", min_probability)):
        if value is not None:
            check_number(f"--{name.replace('_', '-')}", value, 0.0, 1.0)
            tagger.set_params(**{name: value})
    wanted = tagger.precision
    if wanted is not None and least_confidence(tagger.state.suggestions, wanted) > 1.0:
        curve = tagger.precision_curve_
        why = f"no confidence has reached a precision of {wanted:g} on enough recent rows"
        if not curve.n_suggestions.any():
            why = "the tagger has learned a single batch, and was never tested"
        say(f"No tags are given: {why}. Give a lower --precision, or let it learn more rows.", err=True)


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


def tag_tables(tagger: Tagger, tables: Iterator[Table], *, top: int | None, suffix: str) -> Iterator[Table]:
    """Yield each table as it was read, with tags, their probabilities, and whether a person should look at the row."""
    from labelrace.tables.write import as_predicted, with_columns

    names, as_lists = _written_names(tagger), suffix in (".jsonl", ".parquet")
    for table in tables:
        suggested = tagger.suggest(table)
        review = [one.review for one in suggested]
        columns, given = _tag_columns(tagger, suggested, as_lists)
        columns[names.predicted] = [as_predicted(tags) for tags in given]
        columns[names.probabilities] = _numbers([list(one.tags.values()) for one in suggested], as_lists)
        columns[names.review] = review
        if top is not None:
            likely = tagger.predict_top(table, top)
            columns[names.top] = _texts(tagger, [[tag for tag, _ in row] for row in likely], as_lists)
            columns[names.top_probabilities] = _numbers([[p for _, p in row] for row in likely], as_lists)
        yield with_columns(table, columns)


def _written_names(tagger: Tagger) -> Any:
    """Return what the columns beside tags are called."""
    from labelrace.tables.write import written_names

    tags = [tagger.tags] if isinstance(tagger.tags, str) else tagger.tags or ()
    return written_names([*(column.name for column in tagger.columns_), *tags])


def _tag_columns(
    tagger: Tagger, suggested: list[Any], as_lists: bool
) -> tuple[dict[str, list[Any]], list[list[str] | None]]:
    """Return tags as the tagger learns them, and as they are found again; None where the row is left to people.

    They are one column, or columns of 0 and 1, empty where nothing is known.
    """
    given = [None if one.review and not one.tags else list(one.tags) for one in suggested]
    if isinstance(tagger.tags, (list, tuple)):
        current = {column: tagger.state.names.current([column]) for column in tagger.tags}
        truths = {
            column: [None if tags is None else int(not names.isdisjoint(tags)) for tags in given]
            for column, names in current.items()
        }
        return truths, [
            None if tags is None else [column for column, names in current.items() if not names.isdisjoint(tags)]
            for tags in given
        ]
    name = tagger.tags if isinstance(tagger.tags, str) else "tags"
    return {name: _texts(tagger, [list(one.tags) for one in suggested], as_lists)}, given


def _texts(tagger: Tagger, given: list[list[str]], as_lists: bool) -> list[Any]:
    from labelrace.tables import join_tags

    return given if as_lists else [join_tags(tags, tagger.separator_) for tags in given]


def _numbers(probabilities: list[list[float]], as_lists: bool) -> list[Any]:
    rounded = [[float(f"{probability:.4g}") for probability in row] for row in probabilities]
    return rounded if as_lists else [";".join(map(str, row)) for row in rounded]


def _write_tables(tagger: Tagger, tables: Iterator[Table], out: Path | None, suffix: str, form: CsvForm) -> None:
    """Write tables as they come, and say how many rows got tags."""
    from labelrace.tables.write import json_writer, table_writer

    n_rows, n_tagged, n_review, names = 0, 0, 0, _written_names(tagger)

    def write_all(write: Any) -> None:
        nonlocal n_rows, n_tagged, n_review
        for table in tables:
            write(table)
            n_rows += table.n_rows
            n_tagged += sum(map(bool, table.columns[names.probabilities]))
            n_review += sum(table.columns[names.review])

    if out is None:
        write_all(json_writer(standard_output()))
    else:
        with atomic_file(out) as file, table_writer(file, suffix, form.bom, form.delimiter) as write:
            write_all(write)
    say(f"{number_of(n_rows, 'row')}: {n_tagged:,} with tags, {n_review:,} for review.", err=True)


def _write(batches: Iterator[_Rows], file: TextIO, *, as_csv: bool) -> None:
    """Write batch by batch, so that a reader need not wait: JSON lines, or CSV with semicolons between list items."""
    writer = csv.writer(file)
    for number, rows in enumerate(batches):
        if as_csv and number == 0 and rows:
            writer.writerow(map(escape_formula, rows[0]))
        for row in rows:
            if as_csv:
                cells = [";".join(map(str, cell)) if isinstance(cell, list) else cell for cell in row.values()]
                writer.writerow(map(escape_formula, cells))
            else:
                file.write(json.dumps(row) + "\n")
        file.flush()
