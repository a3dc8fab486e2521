"""``labelrace data``: list, describe, fetch, convert and make datasets."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import DownloadColumn, Progress, TaskID
from rich.table import Table
from rich.text import Text

from labelrace.cli import options
from labelrace.cli.messages import say

app = typer.Typer(no_args_is_help=True, help="List, describe, fetch, convert and make datasets.")


@app.command("list")
def list_() -> None:
    """List the datasets that can be given by name, and where they are on this computer.

    [dim]Example:[/dim] labelrace data list
    """
    from labelrace.base.printing import printable
    from labelrace.streams.catalog import ENTRIES, EXTREME_REPOSITORY

    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("name", no_wrap=True)
    for column in ("rows", "features", "labels"):
        table.add_column(column, justify="right")
    table.add_column("about")
    table.add_column("where", overflow="fold")
    for entry in ENTRIES:
        absent = "bring your own" if entry.command else "not found"
        where = Text(absent, style="dim") if entry.path is None else Text(printable(str(entry.path)))
        table.add_row(entry.name, str(entry.rows), str(entry.features), str(entry.labels), entry.note, where)
    console = Console()
    console.print(table)
    commands = [entry.command for entry in ENTRIES if entry.command and entry.path is None]
    if commands:
        console.print(f"\nBring your own from {EXTREME_REPOSITORY}, unpack it, then:", highlight=False, soft_wrap=True)
    for command in commands:
        console.print(command, highlight=False, soft_wrap=True, markup=False)


@app.command()
def info(source: options.Source, labels: options.Labels = None) -> None:
    """Describe a dataset: rows, features, labels and their frequencies.

    [dim]Example:[/dim] labelrace data info enron.arff --labels enron.xml
    """
    import numpy as np

    from labelrace.base.printing import printable
    from labelrace.streams import load_dataset

    data = load_dataset(source, options.as_labels(labels))
    counts = np.asarray(data.present.sum(axis=0), dtype=float)
    cardinality = data.present.sum() / max(len(data), 1)
    n_nonzero = data.X.nnz if hasattr(data.X, "nnz") else np.count_nonzero(data.X)
    order = np.argsort(-counts, kind="stable")
    frequent = ", ".join(f"{data.label_names[i]} ({counts[i] / max(len(data), 1):.0%})" for i in order[:5])
    facts = {
        "name": data.name,
        "rows": f"{len(data):,}",
        "features": f"{len(data.feature_names):,}, of which {int(np.asarray(data.categorical).sum()):,} are nominal",
        "non-zero features": f"{n_nonzero / max(data.X.shape[0] * data.X.shape[1], 1):.2%}",
        "labels": f"{len(data.label_names):,}, of which {int((counts == 0).sum()):,} never occur",
        "labels a row": f"{cardinality:.3f} (density {cardinality / max(len(data.label_names), 1):.4f})",
        "most frequent": frequent,
    }
    table = Table(box=None, pad_edge=False, show_header=False)
    for name, value in facts.items():
        table.add_row(Text(name, style="dim"), Text(printable(value)))
    Console().print(table)


@app.command()
def fetch(
    name: Annotated[str, options.argument(help="A name from 'labelrace data list'.")],
    folder: Annotated[Path | None, options.option(help="The folder to download to; by default the cache.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that differs from the catalog.")] = False,
) -> None:
    """Download a dataset and verify its checksum.

    [dim]Example:[/dim] labelrace data fetch yeast
    """
    from labelrace.streams.catalog import fetch as fetch_dataset

    screen = Console(stderr=True)
    columns = (*Progress.get_default_columns(), DownloadColumn())
    with Progress(*columns, console=screen, transient=True, disable=not screen.is_terminal) as bar:
        tasks: dict[str, TaskID] = {}

        def show(file: str, done: int, total: int) -> None:
            if file not in tasks:
                tasks[file] = bar.add_task(file)
            bar.update(tasks[file], completed=done, total=total or None)

        path = fetch_dataset(name, folder, progress=show, force=force)
    typer.echo(path)


@app.command()
def convert(
    source: options.Source,
    target: Annotated[Path, options.argument(help="The file to write; its suffix determines the format.")],
    labels: options.Labels = None,
) -> None:
    """Convert a dataset to another format.

    [dim]Example:[/dim] labelrace data convert enron.arff enron.svm --labels enron.xml
    """
    from labelrace.streams import open_stream, write_dataset

    options.check_out(target, source, labels)
    write_dataset(open_stream(source, options.as_labels(labels)), target)
    typer.echo(target)


@app.command()
def make(
    target: Annotated[Path, options.argument(help="The file to write; its suffix determines the format.")],
    shape_of: Annotated[
        str | None, options.option("--like", help="Take the shape of one of the paper's datasets, such as NUS-WIDE.")
    ] = None,
    rows: Annotated[int | None, options.option(help="Number of rows.")] = None,
    features: Annotated[int | None, options.option(help="Number of features.")] = None,
    labels: Annotated[int | None, options.option(help="Number of labels.")] = None,
    cardinality: Annotated[float | None, options.option(help="Mean number of labels of a row.")] = None,
    density: Annotated[
        float | None, options.option(help="Share of ones in binary features; without it features are numeric.")
    ] = None,
    drift: Annotated[str, typer.Option(help="Its drift: none, sudden, gradual, incremental or recurring.")] = "none",
    seed: options.Seed = 0,
) -> None:
    """Make a synthetic stream and write it to a file.

    [dim]Example:[/dim] labelrace data make drifting.arff --rows 5000 --features 40 --labels 30 --drift sudden
    """
    from labelrace.streams import write_dataset
    from labelrace.streams.synthetic import SyntheticStream, like

    given = {"n_features": features, "n_labels": labels, "cardinality": cardinality, "density": density}
    changes: dict[str, Any] = {name: value for name, value in given.items() if value is not None} | {"drift": drift}
    if shape_of is not None:
        stream = like(shape_of, n_rows=rows, seed=seed, **changes)
    else:
        changes |= {} if rows is None else {"n_rows": rows}
        stream = SyntheticStream(seed=seed, **changes)
    write_dataset(stream, target)
    say(f"{stream!r}: {target}")
