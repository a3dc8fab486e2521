"""``labelrace bench``: the paper's tables beside ours, how good the models are, and how fast."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from labelrace.cli.options import Seed, as_names

__all__ = ["app"]

app = typer.Typer(no_args_is_help=True, help="Reproduce the paper's tables; compare models; measure speed.")

_RUNS = Path("labelrace-runs")

Data = Annotated[
    list[Path] | None,
    typer.Option(help="A folder with datasets, beside LABELRACE_DATA and the cache; repeatable.", show_default=False),
]
Resume = Annotated[bool, typer.Option("--resume", help="Go on with the runs in --out.")]


@app.command()
def paper(
    data: Data = None,
    runs: Annotated[int, typer.Option(help="How often each model runs, each time with another seed.")] = 10,
    seed: Seed = 0,
    table: Annotated[str, typer.Option(help="Which tables, with commas between.")] = "2,3,4,sweep",
    jobs: Annotated[int | None, typer.Option(help="Processes; by default one a processor.", show_default=False)] = None,
    out: Annotated[Path, typer.Option(help="Folder for records, page, tables and figures.")] = _RUNS / "paper",
    resume: Resume = False,
    synthetic: Annotated[
        bool, typer.Option("--synthetic", help="Add a synthetic stream for each dataset that is not at hand.")
    ] = False,
    synthetic_rows: Annotated[
        int | None, typer.Option(help="Rows of each synthetic stream, if not the dataset's.", show_default=False)
    ] = None,
) -> None:
    """Run the paper's experiments and put the results beside its tables.

    [dim]Examples:[/dim]

    labelrace bench paper

    labelrace bench paper --data ~/mulan --table 2,3 --runs 3 --out quick
    """
    from labelrace.experiments import print_paper, run_paper, write_paper
    from labelrace.experiments.progress import PlanBar, bench_bars

    with bench_bars(Console(stderr=True)) as bars:
        bar = PlanBar(bars, runs)
        summary = run_paper(
            out,
            data=data or (),
            tables=[text.strip() for text in table.split(",")],
            runs=runs,
            seed=seed,
            jobs=jobs,
            resume=resume,
            synthetic=synthetic,
            synthetic_rows=synthetic_rows,
            on_plan=bar.set_plan,
            on_progress=bar.show,
        )
    written = write_paper(summary, out)
    console = Console()
    print_paper(summary, console)
    console.print(f"\nThe page: {written['paper.html']}", highlight=False, soft_wrap=True)


@app.command()
def quality(
    models: Annotated[
        str | None,
        typer.Option(help="Which models, with commas between; by default all online ones.", show_default=False),
    ] = None,
    data: Data = None,
    datasets: Annotated[
        str | None, typer.Option(help="Which datasets, with commas between, if not all found.", show_default=False)
    ] = None,
    runs: Annotated[int, typer.Option(help="How often each model runs, each time with another seed.")] = 1,
    seed: Seed = 0,
    jobs: Annotated[int, typer.Option(help="Processes; with more than one, times are not comparable.")] = 1,
    out: Annotated[Path, typer.Option(help="Folder for records, page and tables.")] = _RUNS / "quality",
    resume: Resume = False,
    synthetic: Annotated[
        bool, typer.Option("--synthetic", help="Add synthetic streams, with each kind of drift and without.")
    ] = False,
    synthetic_rows: Annotated[int, typer.Option(help="Rows of each synthetic stream.")] = 4000,
) -> None:
    """Compare online models on every dataset at hand: measures, calibration, time and ranks.

    After each dataset the files are written anew; what Ctrl-C cuts off goes on with --resume.

    [dim]Examples:[/dim]

    labelrace bench quality

    labelrace bench quality --models race,obr,majority --datasets enron --synthetic --out quick
    """
    from labelrace.experiments.progress import PlanBar, bench_bars
    from labelrace.experiments.quality import print_quality, run_quality, write_quality

    with bench_bars(Console(stderr=True)) as bars:
        bar = PlanBar(bars, runs)
        summary = run_quality(
            out,
            models=as_names(models) if models is not None else None,
            data=data or (),
            datasets=as_names(datasets or ""),
            runs=runs,
            seed=seed,
            jobs=jobs,
            resume=resume,
            synthetic=synthetic,
            synthetic_rows=synthetic_rows,
            on_plan=bar.set_plan,
            on_progress=bar.show,
            on_summary=lambda so_far: write_quality(so_far, out),
        )
    console = Console()
    print_quality(summary, console)
    console.print(f"\nThe page: {out / 'quality.html'}", highlight=False, soft_wrap=True)


@app.command()
def speed(
    rows: Annotated[
        list[int] | None, typer.Option(help="Numbers of rows to vary; repeatable.", show_default=False)
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for the table and the plot.")] = _RUNS / "speed",
) -> None:
    """Measure time and memory of every online model, how they grow, and other libraries beside them.

    [dim]Example:[/dim] labelrace bench speed --rows 1000 --rows 4000
    """
    from labelrace.experiments import print_speed, run_speed, write_speed
    from labelrace.experiments.progress import bench_bars

    with bench_bars(Console(stderr=True)) as bars:
        task = bars.add_task("measuring", total=None, now="")
        summary = run_speed(
            rows=rows or (),
            on_progress=lambda now, done, total: bars.update(task, completed=done, total=total, now=now),
        )
    written = write_speed(summary, out)
    console = Console()
    print_speed(summary, console)
    for path in written.values():
        console.print(str(path), highlight=False, soft_wrap=True)
