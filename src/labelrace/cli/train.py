"""``labelrace train`` and ``labelrace update``: train a model or a tagger and save it, or continue its training."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from labelrace.cli import options, tagging
from labelrace.cli.messages import end_early, number_of, say
from labelrace.cli.progress import check_learned, learn_batches
from labelrace.cli.workers import Workers, train_on_workers
from labelrace.exceptions import DataFormatError


@options.takes_tags
def train(
    sources: options.Sources,
    out: Annotated[Path, options.option("--out", "-o", help="The file to save the model to.")],
    labels: options.Labels = None,
    model: Annotated[
        str, typer.Option("--model", "-m", help="A model (see 'labelrace models'), or module:Class for your own.")
    ] = options.DEFAULT_MODEL,
    batch_size: options.BatchSize = 500,
    seed: options.Seed = 0,
    parameters: Annotated[
        list[str] | None, options.option("--set", help="A parameter of the model, name=value. Repeatable.")
    ] = None,
    workers: options.Workers = None,
    scheduler: options.Scheduler = None,
    vocabulary: options.Vocabulary = None,
    force: options.Force = False,
    confirmed: options.Confirmed = False,
    table: options.TagOptions | None = None,
) -> None:
    """Train a model on a data file, or on tables with tags, and save it.

    After Ctrl-C, or after a row that cannot be read or learned, the model learned so far is saved.

    [dim]Examples:[/dim]

    labelrace train tickets.csv --tags tags -o tagger.labelrace

    labelrace train may.csv june.csv 'archive/*.csv' --tags tags -o tagger.labelrace --vocabulary tags.csv

    labelrace train 'tickets-*.parquet' --tags tags -o tagger.labelrace --workers 4

    labelrace train enron.arff --labels enron.xml -o enron.safetensors --model race-cls-adaptive
    """
    # Checked before the training, which may take long.
    options.check_out(out, *sources, labels, vocabulary)
    options.check_replaces(out, force)
    from labelrace.base.registry import make_model

    chosen, where = options.as_parameters(parameters), Workers(workers, scheduler)
    source = sources[0] if len(sources) == 1 else sources
    if table is not None:
        if labels is not None:
            raise ValueError("--labels and --tags must not be given together: --tags is for tables with tags.")
        learner = make_model(model, **chosen) if chosen else model
        beforehand = tagging.read_vocabulary(vocabulary)
        tagger = table.tagger(model=learner, batch_size=batch_size, random_state=seed, vocabulary=beforehand)
        if not where:
            files = options.matching_files(sources)
            tagging.train_tagger(tagger, model, files, out, batch_size, table.reading, confirmed)
        else:
            if confirmed:
                raise ValueError("--confirmed must be without --workers and --scheduler: leave one of them out.")
            where.check(sources, table.reading)
            train_on_workers(tagger, model, source, out, where, batch_size=batch_size)
    elif vocabulary is not None or confirmed:
        raise ValueError(f"--{'confirmed' if confirmed else 'vocabulary'} needs --tags: it is for tables with tags.")
    elif where:
        shared = make_model(model, **{"random_state": seed, **chosen})
        settings = {"batch_size": batch_size, "labels": options.as_labels(labels)}
        train_on_workers(shared, model, source, out, where, **settings)
    else:
        files = options.matching_files(sources)
        if len(files) > 1:
            raise ValueError(f"Several files must be tables with --tags, or be learned by --workers, got {len(files)}.")
        _train_model(model, chosen, files[0], out, options.as_labels(labels), batch_size, seed)


def _train_model(
    name: str, parameters: dict[str, Any], source: str, out: Path, labels: Any, batch_size: int, seed: int
) -> None:
    """Learn a stream batch by batch, or at once if the model is offline, and save the model."""
    from labelrace.base.registry import is_online, make_model
    from labelrace.evaluation import ModelSpec
    from labelrace.streams import open_stream
    from labelrace.streams.column_matching import source_of, stream_features
    from labelrace.streams.dataset import collect

    if not hasattr(make_model(name, **parameters), "save"):
        raise ValueError(f"--model must be a model that can be saved, got {name}: 'labelrace run' compares any.")
    try:
        stream = open_stream(source, labels)
    except DataFormatError as error:
        if "cannot tell which columns are labels" not in str(error):
            raise
        raise DataFormatError(
            f"{source}: cannot tell which columns are labels; add --tags COLUMN for a table with tags, or --labels for "
            "a data file (see 'labelrace train --help')"
        ) from None
    model = ModelSpec(name, {"label_names": list(stream.label_names), **parameters}).make(seed, stream.categorical)
    stopped = None
    if is_online(name):
        rows, stopped = learn_batches(model, stream.batches(batch_size), type(model).partial_fit)
        check_learned(rows > 0, stopped, "Nothing was learned: the source has no rows.")
    else:
        data = collect(stream)
        rows = len(data)
        model.fit(data.X, data.Y)
    # Codes of nominal values come from the file; another file must be read with the same codes.
    model.source_ = source_of(stream_features(stream))
    target, kept = (out, []) if stopped is None else options.partial_target(out)
    model.save(target)
    if stopped is not None:
        end_early(stopped, rows, target, *kept)
    say(f"{name} learned {number_of(rows, 'row')} with {number_of(len(stream.label_names), 'label')}: {out}")


@options.takes_reading
def update(
    tagger_file: options.TaggerFile,
    sources: options.Tables,
    out: Annotated[
        Path | None, options.option("--out", "-o", help="A new file to save to, instead of replacing TAGGER.")
    ] = None,
    batch_size: options.BatchSize = 500,
    separator: Annotated[
        str | None, options.option(help="Separator of the tags in these files, if it differs from the learned one.")
    ] = None,
    fold_tags: Annotated[
        bool, typer.Option("--fold-tags", help="From now on, tags that differ by case or spaces only are one tag.")
    ] = False,
    force: options.Force = False,
    confirmed: options.Confirmed = False,
    embed: options.Embed = None,
    vocabulary: options.Vocabulary = None,
    reading: Any = None,
) -> None:
    """Continue the training of a tagger with further rows, and replace its file.

    Rows that were learned before with the same tags are skipped; with other tags they are corrections. Of a file that
    predict has written, the rows are learned whose tags somebody has changed.

    [dim]Example:[/dim] labelrace update tagger.labelrace corrected.csv
    """
    files = options.matching_files(sources)
    options.check_out(out or tagger_file, *files, vocabulary)
    target = options.check_new(out, tagger_file, force)
    tagger, whole = tagging.load_whole(tagger_file, embed)
    usual = tagger.separator
    tagger.set_params(separator=separator or usual, fold_tags=fold_tags or tagger.fold_tags)
    if vocabulary is not None:
        tagger.add_labels(str(vocabulary))
    before = tagging.snapshot(tagger)
    nothing = f"Nothing was learned: no row of {', '.join(files)} has tags, and {tagger_file} is as it was."
    learned = tagging.learn_files(tagger, files, batch_size, reading, nothing, confirmed)
    tagger.set_params(separator=usual)
    if learned.n_unchanged and tagger.state is before.state and vocabulary is None and out is None and not fold_tags:
        learned.tell_skipped()
        check_learned(learned.stopped is None, learned.stopped, nothing)
        say(f"{tagging.unchanged_text(learned.n_unchanged)} {tagger_file} is as it was.", err=True)
        return
    whole.save(target)
    more = tagger.n_rows_ - before.n_rows
    tagging.check_ended(tagger, learned, before, target)
    counts = f"{number_of(more, 'more row')}, {tagger.n_rows_:,} in all, with {number_of(len(tagger.tags_), 'tag')}"
    tagging.report_tagger(tagger, f"Learned {counts}: {target}", learned, before, len(files))
