"""``labelrace train`` and ``labelrace update``: train a model or a tagger and save it, or continue its training."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from labelrace.cli import options, tagging
from labelrace.cli.messages import end_early, say
from labelrace.cli.progress import check_learned, learn_batches
from labelrace.cli.workers import Workers, train_on_workers


@options.takes_tags
def train(
    source: options.Source,
    out: Annotated[Path, options.option("--out", "-o", help="The file to save the model to.")],
    labels: options.Labels = None,
    model: Annotated[
        str, typer.Option("--model", "-m", help="A model (see 'labelrace models').")
    ] = options.DEFAULT_MODEL,
    batch_size: options.BatchSize = 500,
    seed: options.Seed = 0,
    parameters: Annotated[
        list[str] | None, options.option("--set", help="A parameter of the model, name=value. Repeatable.")
    ] = None,
    workers: options.Workers = None,
    scheduler: options.Scheduler = None,
    table: options.TagOptions | None = None,
) -> None:
    """Train a model on a data file, or on a table with tags, and save it.

    After Ctrl-C, or after a row that cannot be read, what was learned so far is saved.

    [dim]Examples:[/dim]

    labelrace train tickets.csv --tags tags -o tagger.labelrace

    labelrace train 'tickets-*.parquet' --tags tags -o tagger.labelrace --workers 4

    labelrace train enron.arff --labels enron.xml -o enron.safetensors --model race-cls-adaptive
    """
    # Checked before the training, which may take long.
    options.check_out(out, source, labels)
    from labelrace.base.registry import make_model

    chosen, where = options.as_parameters(parameters), Workers(workers, scheduler)
    if table is not None:
        if labels is not None:
            raise ValueError("--labels and --tags must not be given together: --tags is for tables with tags.")
        learner = make_model(model, **chosen) if chosen else model
        tagger = table.tagger(model=learner, batch_size=batch_size, random_state=seed)
        if not where:
            tagging.train_tagger(tagger, model, source, out, batch_size, table.delimiter)
        elif table.delimiter is not None or source == "-":
            raise ValueError("--workers and --scheduler are for files: leave out --delimiter and '-'.")
        else:
            train_on_workers(tagger, model, source, out, where, batch_size=batch_size)
    elif where:
        shared = make_model(model, **{"random_state": seed, **chosen})
        settings = {"batch_size": batch_size, "labels": options.as_labels(labels)}
        train_on_workers(shared, model, source, out, where, **settings)
    else:
        _train_model(model, chosen, source, out, options.as_labels(labels), batch_size, seed)


def _train_model(
    name: str, parameters: dict[str, Any], source: str, out: Path, labels: Any, batch_size: int, seed: int
) -> None:
    """Learn a stream batch by batch, or at once if the model is offline, and save the model."""
    from labelrace.base.registry import is_online
    from labelrace.evaluation import ModelSpec
    from labelrace.streams import open_stream
    from labelrace.streams.column_matching import source_of, stream_features
    from labelrace.streams.dataset import collect

    stream = open_stream(source, labels)
    model = ModelSpec(name, {"label_names": list(stream.label_names), **parameters}).make(seed, stream.categorical)
    stopped = None
    if is_online(name):
        rows, stopped = _learn(model, stream, batch_size)
    else:
        data = collect(stream)
        rows = len(data)
        model.fit(data.X, data.Y)
    # Codes of nominal values come from the file; another file must be read with the same codes.
    model.source_ = source_of(stream_features(stream))
    model.save(out)
    message = f"{name} learned {rows} rows with {len(stream.label_names)} labels: {out}"
    if stopped is not None:
        end_early(stopped, message)
    say(message)


def _learn(model: Any, stream: Any, batch_size: int) -> tuple[int, BaseException | None]:
    """Learn until the end, Ctrl-C or a row that is wrong; return the number of rows, and what stopped it."""

    def learn(batch: tuple[Any, Any]) -> tuple[int, str]:
        model.partial_fit(*batch)
        return batch[0].shape[0], ""

    rows, stopped = learn_batches(stream.batches(batch_size), learn)
    check_learned(rows > 0, stopped, "Nothing was learned: the source has no rows.")
    return rows, stopped


def update(
    tagger_file: options.TaggerFile,
    source: Annotated[
        str, options.argument(help="A table with tags; '-' reads JSON lines or CSV from standard input.")
    ],
    out: Annotated[
        Path | None, options.option("--out", "-o", help="A new file to save to, instead of replacing TAGGER.")
    ] = None,
    delimiter: options.Delimiter = None,
    batch_size: options.BatchSize = 500,
) -> None:
    """Continue the training of a tagger with further rows, and replace its file.

    [dim]Example:[/dim] labelrace update tagger.labelrace corrected.csv
    """
    target = out or tagger_file
    options.check_out(target, source)
    tagger = tagging.load_tagger(tagger_file)
    before = tagger.n_rows_
    nothing = f"Nothing was learned: no row of {source} has tags, and {tagger_file} is as it was."
    stopped = tagging.learn_tables(tagger, tagging.tables_of(source, batch_size, delimiter), nothing)
    tagger.save(target)
    counts = f"{tagger.n_rows_ - before} more rows, {tagger.n_rows_} in all, with {len(tagger.tags_)} tags"
    tagging.report_tagger(tagger, f"Learned {counts}: {target}", stopped)
