"""``labelrace run``: compare models on a stream."""

from __future__ import annotations

import gc
import json
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from labelrace.cli import options, tagging
from labelrace.cli.messages import Interrupted, say

_RUNS = Path("labelrace-runs")
# Groups of models that run when they are named, or with --all.
_RELATED_WORK = ("online", "compression")


@options.takes_tags
def run(
    source: Annotated[
        str | None,
        options.argument(
            help="A data file or the name of a dataset (see 'labelrace data list'); by default generated tickets with "
            "tags, whose words change halfway."
        ),
    ] = None,
    labels: options.Labels = None,
    models: options.Models = None,
    parameters: options.ModelParameters = None,
    batch_size: options.BatchSize = 500,
    runs: options.Runs = 1,
    seed: options.Seed = 0,
    measures: Annotated[
        str,
        typer.Option(
            help="'paper' (five measures), 'all' (nineteen), names separated by commas, or 'auto': the paper's, and "
            "P@1, P@5 and nDCG@5 if there are more than 1,000 labels."
        ),
    ] = "auto",
    protocol: Annotated[
        str,
        typer.Option(
            help="'prequential': each batch is predicted, then learned. 'holdout': a third of the rows is not learned."
        ),
    ] = "prequential",
    workers: options.Workers = None,
    scheduler: options.Scheduler = None,
    out: Annotated[
        Path | None, options.option(help="The folder for results and report; by default a new one in labelrace-runs.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue the interrupted run in --out.")] = False,
    as_json: options.AsJson = False,
    all_models: Annotated[
        bool,
        typer.Option("--all", help="Also run the models of the related work; see 'labelrace models'."),
    ] = False,
    table: options.TagOptions | None = None,
) -> None:
    """Compare models on a stream: print a table of their quality, and write a report as an HTML page.

    [dim]Examples:[/dim]

    labelrace run

    labelrace run tickets.csv --tags tags

    labelrace run enron.arff --labels enron.xml --model race-cls-adaptive --model obr --batch-size 100 --runs 10

    labelrace run --model race --model fast=race --set fast.half_life=500
    """
    with _no_collection():
        from labelrace.base.registry import is_online, model_group, model_names
        from labelrace.cli.progress import run_bars
        from labelrace.evaluation import run as evaluate_models
        from labelrace.report import print_report, summarize, write_report

    if resume and out is None:
        raise ValueError("--resume needs --out, the folder of the run to continue.")
    names = models or [
        name
        for name in model_names()
        if (is_online(name) or protocol == "holdout") and (all_models or model_group(name) not in _RELATED_WORK)
    ]
    chosen = options.as_specs(names, parameters)
    folder = out or _free_folder("demo" if source is None else Path(source).stem)
    if not resume and folder.is_dir() and any(folder.iterdir()):
        raise ValueError(f"--out {folder} is not empty: give another folder, or --resume to continue the run in it.")
    data: Any = _demo(batch_size) if source is None else source
    if table is not None and source is not None:
        data = _tagged(source, table, batch_size)
    try:
        with run_bars(Console(stderr=True)) as show, _performer(scheduler) as performer:
            manifest, records = evaluate_models(
                data,
                chosen,
                labels=options.as_labels(labels),
                out=folder,
                protocol=protocol,  # type: ignore[arg-type]  # which checks it
                batch_size=batch_size,
                runs=runs,
                seed=seed,
                measures=measures if measures in ("auto", "paper", "all") else measures.split(","),
                jobs=workers,
                resume=resume,
                on_progress=show,
                performer=performer,
            )
    except KeyboardInterrupt:
        raise Interrupted(_what_is_saved(folder)) from None
    summary = summarize(manifest, records)
    written = write_report(summary, folder)
    if as_json:
        typer.echo(json.dumps(summary))
    else:
        console = Console()
        print_report(summary, console)
        console.print(f"\nReport: {written['report.html']}", highlight=False, soft_wrap=True, markup=False)
    if any(record["kind"] == "failed" for record in records):
        raise typer.Exit(options.FAILED)  # the report says which and why


@contextmanager
def _no_collection() -> Iterator[None]:
    """Import without garbage collection: none of the 60,000 objects that are made here becomes garbage."""
    was_enabled, is_first = gc.isenabled(), "labelrace.evaluation" not in sys.modules
    gc.disable()
    try:
        yield
    finally:
        if is_first:
            gc.freeze()  # or every later collection would visit them all, also that at the end of the command
        if was_enabled:
            gc.enable()


@contextmanager
def _performer(scheduler: str | None) -> Iterator[Any]:
    """Provide a function that performs tasks on a cluster; None for processes on this machine."""
    if scheduler is None:
        yield None
        return
    from labelrace.distributed.cluster import connect
    from labelrace.distributed.evaluating import perform

    with connect(scheduler=scheduler) as client:
        yield partial(perform, client)


def _demo(batch_size: int) -> Any:
    """Generate tickets with tags, whose words drift, and turn them into numbers."""
    from labelrace.streams.demo import demo_tickets
    from labelrace.tables import Tagger, tagged_dataset

    data, _ = tagged_dataset(Tagger("tags", batch_size=batch_size), demo_tickets())
    return replace(data, name="synthetic tickets")


def _tagged(source: str, table: options.TagOptions, batch_size: int) -> Any:
    """Read a table with tags; print the kinds of its columns and how long the features took."""
    from labelrace.tables import tagged_dataset

    data, features = tagged_dataset(table.tagger(batch_size=batch_size), source, table.reading)
    tagging.tell_bad_rows(table.reading.on_bad_row)
    kinds = "; ".join(f"{column.name}: {column}" for column in features.columns_)
    say(f"{kinds}. From text to numbers in {data.feature_seconds:.1f} s, part of each model's time.", err=True)
    return data


def _what_is_saved(folder: Path) -> str:
    """Return a sentence on the results of an interrupted run."""
    from labelrace.evaluation import read_run

    try:
        _, records = read_run(folder)
    except (OSError, ValueError):
        records = []
    if not records:
        return "Nothing was finished yet."
    return f"What was finished is in {folder}: repeat the command with --out {folder} --resume to continue."


def _free_folder(name: str) -> Path:
    """Return a folder that does not exist yet."""
    stem = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "run"
    number = 1
    while (_RUNS / f"{stem}-{number}").exists():
        number += 1
    return _RUNS / f"{stem}-{number}"
