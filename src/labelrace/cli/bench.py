"""``labelrace bench``: the paper's tables and ours, the quality of the models, their speed, and very many labels."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from labelrace.cli.options import AsJson, Interrupted, Runs, Seed, Workers, as_names, option
from labelrace.cli.progress import experiment_bar

if TYPE_CHECKING:
    from labelrace.report.document import Document

app = typer.Typer(no_args_is_help=True, help="Reproduce the paper's tables; compare models; measure speed.")

_RUNS = Path("labelrace-runs")

Data = Annotated[
    list[Path] | None, option(help="A folder with datasets, besides LABELRACE_DATA and the cache; repeatable.")
]
Resume = Annotated[bool, typer.Option("--resume", help="Continue the runs in --out.")]
Everything = Annotated[
    bool, typer.Option("--all", help="Also run what takes long; otherwise notes tell how long it would take.")
]


@app.command()
def paper(
    data: Data = None,
    runs: Runs = 10,
    seed: Seed = 0,
    table: Annotated[str, typer.Option(help="Which tables, separated by commas.")] = "2,3,4,related,sweep",
    workers: Workers = None,
    out: Annotated[Path, typer.Option(help="Folder for records, page, tables and figures.")] = _RUNS / "paper",
    resume: Resume = False,
    everything: Everything = False,
    synthetic: Annotated[
        bool, typer.Option("--synthetic", help="Add a synthetic stream for each dataset that is not available.")
    ] = False,
    synthetic_rows: Annotated[int | None, option(help="Rows of each synthetic stream, if not the dataset's.")] = None,
    as_json: AsJson = False,
) -> None:
    """Run the paper's experiments and compare the results with its tables, and with the related work.

    [dim]Examples:[/dim]

    labelrace bench paper

    labelrace bench paper --data ~/mulan --table 2,3 --runs 3 --out quick
    """
    from labelrace.experiments import paper_document, run_paper

    with _keeping(out), experiment_bar() as show:
        summary = run_paper(
            out,
            data=data or (),
            tables=as_names(table),
            runs=runs,
            seed=seed,
            jobs=workers,
            resume=resume,
            everything=everything,
            synthetic=synthetic,
            synthetic_rows=synthetic_rows,
            on_progress=show,
        )
    _publish(paper_document(summary), out, as_json)


@app.command()
def quality(
    models: Annotated[
        str | None,
        option(
            help="Which models, separated by commas; by default all online models that do not take hours. "
            "vowpal-wabbit and river-logistic can be named, too."
        ),
    ] = None,
    data: Data = None,
    datasets: Annotated[str | None, option(help="Which datasets, separated by commas, if not all found.")] = None,
    runs: Runs = 1,
    seed: Seed = 0,
    workers: Annotated[
        int, typer.Option("--workers", "--jobs", help="Processes; with more than one, times are not comparable.")
    ] = 1,
    out: Annotated[Path, typer.Option(help="Folder for records, page, tables and figures.")] = _RUNS / "quality",
    resume: Resume = False,
    everything: Everything = False,
    synthetic: Annotated[
        bool, typer.Option("--synthetic", help="Add synthetic streams, with each kind of drift and without.")
    ] = False,
    synthetic_rows: Annotated[int, typer.Option(help="Rows of each synthetic stream.")] = 4000,
    tuned: Annotated[
        bool,
        typer.Option(
            "--tuned", help="Also show rivals with the best of several settings on each dataset, in hindsight."
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Compare online models on every available dataset: measures, calibration, time, memory and ranks.

    Without --models, what would take hours is left out, and notes tell how long it would take; --all runs it.
    Page and CSV files are written after each dataset; --resume continues after Ctrl-C.

    [dim]Examples:[/dim]

    labelrace bench quality

    labelrace bench quality --models race,obr,majority --datasets enron --synthetic --out quick

    labelrace bench quality --models race,arow,adagrad-logistic,ridge --tuned
    """
    from labelrace.experiments import quality_document, run_quality
    from labelrace.report.document import write_document

    with _keeping(out), experiment_bar() as show:
        summary = run_quality(
            out,
            models=as_names(models) if models is not None else None,
            data=data or (),
            datasets=as_names(datasets or ""),
            runs=runs,
            seed=seed,
            jobs=workers,
            resume=resume,
            everything=everything,
            synthetic=synthetic,
            synthetic_rows=synthetic_rows,
            tuned=tuned,
            on_progress=show,
            on_summary=lambda so_far: write_document(quality_document(so_far), out, ("html", "csv")),
        )
    _publish(quality_document(summary), out, as_json)


@app.command()
def speed(
    rows: Annotated[list[int] | None, option(help="Numbers of rows to vary; repeatable.")] = None,
    out: Annotated[Path, typer.Option(help="Folder for page, tables and figure.")] = _RUNS / "speed",
    as_json: AsJson = False,
) -> None:
    """Measure time and memory of every online model, how they grow with the data, and other libraries.

    [dim]Example:[/dim] labelrace bench speed --rows 1000 --rows 4000
    """
    from labelrace.experiments import run_speed, speed_document

    with experiment_bar() as show:
        summary = run_speed(rows=rows or (), on_progress=show)
    _publish(speed_document(summary), out, as_json)


@app.command()
def extreme(
    labels: Annotated[
        list[int] | None, option(help="Labels of a synthetic stream; repeatable. By default 1,000 to 1,000,000.")
    ] = None,
    synthetic: Annotated[bool, typer.Option(help="Measure synthetic streams, besides datasets.")] = True,
    budget: Annotated[list[str] | None, option(help="Memory of race-hashed, such as 100MB; repeatable.")] = None,
    rows: Annotated[int, typer.Option(help="The largest number of rows of a stream.")] = 6000,
    data: Data = None,
    datasets: Annotated[
        str | None,
        option(
            help="Which datasets, separated by commas; by default all found with more than 1,000 labels; '' for none."
        ),
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for page, tables and figure.")] = _RUNS / "extreme",
    as_json: AsJson = False,
) -> None:
    """Measure quality, speed, memory and latency with very many labels, also of Vowpal Wabbit's label tree.

    [dim]Examples:[/dim]

    labelrace bench extreme

    labelrace bench extreme --labels 1000000 --budget 450MB --datasets ''

    labelrace bench extreme --no-synthetic --datasets debian-depends --rows 60000 --budget 100MB
    """
    from labelrace.experiments import extreme_document, run_extreme

    if labels and not synthetic:
        raise typer.BadParameter("--labels are of synthetic streams, which --no-synthetic leaves out.")
    chosen: dict[str, Any] = {"labels": labels, "budgets": budget}
    with experiment_bar() as show:
        summary = run_extreme(
            **{name: value for name, value in chosen.items() if value},
            **({} if synthetic else {"labels": ()}),
            rows=rows,
            data=data or (),
            datasets=None if datasets is None else as_names(datasets),
            on_progress=show,
        )
    _publish(extreme_document(summary), out, as_json)


def _publish(document: Document, out: Path, as_json: bool) -> None:
    """Write all files, and print the tables or, as JSON, the records."""
    from labelrace.report.document import print_document, write_document

    written = write_document(document, out)
    if as_json:
        typer.echo(json.dumps({"notes": list(document.notes), **document.records}))
        return
    console = Console()
    print_document(document, console)
    console.print(f"\nThe page: {written[f'{document.name}.html']}", highlight=False, soft_wrap=True, markup=False)


@contextmanager
def _keeping(out: Path) -> Iterator[None]:
    """Say after Ctrl-C what is kept and how to continue, if anything is kept."""
    try:
        yield
    except KeyboardInterrupt:
        has_some = any(file.stat().st_size for file in out.glob("runs/**/records.jsonl"))
        kept = f"What was finished is in {out}: repeat the command with --resume to continue."
        raise Interrupted(kept if has_some else "Nothing was finished yet.") from None
