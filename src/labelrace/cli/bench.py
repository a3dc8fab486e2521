"""``labelrace bench``: the paper's tables beside ours, and how fast the models are."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from labelrace.cli.options import Seed

__all__ = ["app"]

app = typer.Typer(no_args_is_help=True, help="Reproduce the paper's tables; measure speed.")

_RUNS = Path("labelrace-runs")


@app.command()
def paper(
    data: Annotated[
        list[Path] | None,
        typer.Option(
            help="A folder with datasets, beside LABELRACE_DATA and the cache; repeatable.", show_default=False
        ),
    ] = None,
    runs: Annotated[int, typer.Option(help="How often each model runs, each time with another seed.")] = 10,
    seed: Seed = 0,
    table: Annotated[str, typer.Option(help="Which tables, with commas between.")] = "2,3,4,sweep",
    jobs: Annotated[int | None, typer.Option(help="Processes; by default one a processor.", show_default=False)] = None,
    out: Annotated[Path, typer.Option(help="Folder for records, page, tables and figures.")] = _RUNS / "paper",
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the runs in --out.")] = False,
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
    from labelrace.bench import print_paper, run_paper, write_paper
    from labelrace.bench.progress import PlanBar, bench_bars

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
def speed(
    rows: Annotated[
        list[int] | None, typer.Option(help="Numbers of rows to vary; repeatable.", show_default=False)
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for the table and the plot.")] = _RUNS / "speed",
) -> None:
    """Measure time and memory of every online model, how they grow, and other libraries beside them.

    [dim]Example:[/dim] labelrace bench speed --rows 1000 --rows 4000
    """
    from labelrace.bench import print_speed, run_speed, write_speed
    from labelrace.bench.progress import bench_bars

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
