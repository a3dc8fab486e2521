"""``python -m benchmarks``: the paper's tables, quality, very many labels, speed, and what else the documents cite.

Run from the root of the repository. Everything is on one thread unless a command says otherwise.
"""

from __future__ import annotations

import os

# Before NumPy is imported.
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import sys

import typer

from benchmarks import (
    asking,
    batch,
    disturbance,
    durability,
    extreme,
    load,
    methods,
    paper,
    pictures,
    quality,
    rivals,
    scale,
    screenshots,
    search,
    speed,
    tags,
    unseen,
    walk,
)

app = typer.Typer(
    name="python -m benchmarks",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
for command in (
    paper.paper,
    quality.quality,
    extreme.extreme,
    extreme.compression,
    batch.batch,
    speed.speed,
    walk.walk,
    methods.methods,
    tags.tags,
    search.search,
    unseen.unseen,
    load.load,
    asking.asking,
    disturbance.disturbance,
    durability.durability,
    pictures.pictures,
    screenshots.screenshots,
    rivals.rivals,
):
    app.command()(command)
app.add_typer(scale.app, name="scale")


def main() -> None:
    """Run a command; a wrong call or file is told in one sentence."""
    rivals.use_rivals()
    try:
        app()
    except (ValueError, OSError, ImportError) as error:
        sys.exit(f"Error: {error}")


if __name__ == "__main__":
    main()
