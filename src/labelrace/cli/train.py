"""``labelrace train`` and ``labelrace predict``: train a model and save it; predict with a saved model."""

from __future__ import annotations

import csv
import io
import itertools
import json
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, TextIO

import typer

from labelrace.base.files import atomic_file, check_target
from labelrace.cli import options, tagging
from labelrace.cli.progress import check_learned, learn_batches


@options.takes_tags
def train(
    source: options.Source,
    out: Annotated[Path, options.option("--out", "-o", help="The model's file.")],
    labels: options.Labels = None,
    model: Annotated[
        str, typer.Option("--model", "-m", help="A model, see 'labelrace models'.")
    ] = options.DEFAULT_MODEL,
    batch_size: options.BatchSize = 500,
    seed: options.Seed = 0,
    parameters: Annotated[
        list[str] | None, options.option("--set", help="A parameter of the model, name=value; repeatable.")
    ] = None,
    workers: options.Workers = None,
    scheduler: options.Scheduler = None,
    table: options.TagOptions | None = None,
) -> None:
    """Train a model on a stream, or on a table with tags, and save it.

    After Ctrl-C, and after a row that cannot be read, what was learned so far is saved.

    [dim]Examples:[/dim]

    labelrace train tickets.csv --tags tags -o tagger.labelrace

    labelrace train 'tickets-*.parquet' --tags tags -o tagger.labelrace --workers 4

    labelrace train enron.arff --labels enron.xml -o enron.safetensors --model race-cls-adaptive
    """
    # Checked before the training, which may take long.
    check_target(out)
    if table is not None:
        if labels is not None:
            raise ValueError(
                "--labels and --tags must not be given together: --tags is for tables, --labels for others."
            )
        tagging.train_tagger(source, out, table, model, parameters, batch_size, seed, workers, scheduler)
        return
    if workers is not None or scheduler is not None:
        from labelrace.base.registry import make_model
        from labelrace.cli.sharing import train_shared

        shared = make_model(model, **{"random_state": seed, **options.as_parameters(parameters)})
        message = train_shared(shared, model, source, out, options.as_labels(labels), batch_size, workers, scheduler)
        typer.echo(message)
        return
    from labelrace.base.registry import is_online
    from labelrace.evaluation import ModelSpec
    from labelrace.streams import open_stream
    from labelrace.streams.dataset import collect
    from labelrace.streams.matching import source_of

    stream = open_stream(source, options.as_labels(labels))
    chosen = {"label_names": list(stream.label_names), **options.as_parameters(parameters)}
    learner = ModelSpec(model, chosen).make(seed, stream.categorical)
    stopped = None
    if is_online(model):
        rows, stopped = _learn(learner, stream, batch_size)
    else:
        data = collect(stream)
        rows = len(data)
        learner.fit(data.X, data.Y)
    # Codes of nominal values come from a file; another one must be read with the same.
    learner.source_ = source_of(stream)
    learner.save(out)
    message = f"{model} learned {rows} rows with {len(stream.label_names)} labels: {out}"
    if stopped is not None:
        options.end_early(stopped, message)
    options.say(message)


def _learn(model: Any, stream: Any, batch_size: int) -> tuple[int, BaseException | None]:
    """Learn batch by batch, until Ctrl-C or a row that is wrong; return the rows learned, and what stopped it."""

    def learn(batch: tuple[Any, Any]) -> tuple[int, str]:
        model.partial_fit(*batch)
        return batch[0].shape[0], ""

    rows, stopped = learn_batches(stream.batches(batch_size), learn)
    check_learned(rows > 0, stopped, "Nothing was learned: the source has no rows.")
    return rows, stopped


def predict(
    model_file: Annotated[Path, options.argument(metavar="MODEL", help="A file written by 'labelrace train'.")],
    source: Annotated[str, options.argument(help="A data file; '-' reads JSON lines or CSV from standard input.")],
    out: Annotated[
        Path | None,
        options.option("--out", "-o", help="A .csv or .jsonl file; by default JSON lines to standard output."),
    ] = None,
    top: Annotated[int | None, options.option(help="Write the K most likely labels and their probabilities.")] = None,
    labels: options.Labels = None,
    batch_size: Annotated[int, typer.Option(help="Rows predicted at once.")] = 500,
    delimiter: options.Delimiter = None,
    workers: options.Workers = None,
    scheduler: options.Scheduler = None,
) -> None:
    """Predict labels, or tags, with a saved model.

    [dim]Examples:[/dim]

    labelrace predict tagger.labelrace new.csv -o out.csv

    labelrace predict enron.safetensors new.arff -o predicted.csv

    cat rows.jsonl | labelrace predict enron.safetensors - --top 5
    """
    from labelrace.base.state_file import load
    from labelrace.streams.matching import features_of, file_rows, text_rows
    from labelrace.tables import Tagger

    if top is not None and top < 1:
        raise ValueError(f"--top must be a whole number of at least 1, got {top}.")
    if out is not None and out.suffix.lower() not in (".csv", ".jsonl"):
        raise ValueError(f"--out must end in .csv or .jsonl, got {out}.")
    model = load(model_file)
    as_csv = out is not None and out.suffix.lower() == ".csv"
    if workers is not None or scheduler is not None:
        from labelrace.cli.sharing import shared_predictions

        rows = shared_predictions(model, source, options.as_labels(labels), batch_size, top, as_csv, workers, scheduler)
        _write_out(rows, out, as_csv=as_csv)
        return
    if isinstance(model, Tagger):
        tables = tagging.tables_of(source, batch_size, delimiter)
        _write_out(tagging.predictions(model, tables, top=top, as_csv=as_csv), out, as_csv=as_csv)
        return
    if source == "-":
        batches = text_rows(sys.stdin, features_of(model), batch_size, delimiter or ",")
    else:
        batches = file_rows(features_of(model), source, options.as_labels(labels), batch_size)
    # A model may have learned from data frames; rows have their features in its order, but not their names.
    warnings.filterwarnings("ignore", "X does not have valid feature names")
    _write_out(predictions(model, batches, top), out, as_csv=as_csv)


def _write_out(predicted: Iterator[list[dict[str, Any]]], out: Path | None, *, as_csv: bool) -> None:
    """Write predictions to standard output, or to a file, which appears when it is complete."""
    if out is None:
        _write(predicted, sys.stdout, as_csv=False)
        return
    with atomic_file(out) as binary:
        text = io.TextIOWrapper(binary, encoding="utf-8", newline="")
        _write(predicted, text, as_csv=as_csv)
        text.detach()


def predictions(model: Any, batches: Iterator[Any], top: int | None) -> Iterator[list[dict[str, Any]]]:
    """Yield for each row of a batch its number and labels, and their probabilities if the best are asked for."""
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


def _write(batches: Iterator[list[dict[str, Any]]], file: TextIO, *, as_csv: bool) -> None:
    """Write batch by batch, so that a reader need not wait: JSON lines, or CSV with semicolons between labels."""
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
