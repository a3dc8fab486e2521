"""``labelrace test``: the quality of a tagger on a tagged file; nothing is learned."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from labelrace.cli import options
from labelrace.cli.messages import number_of, say
from labelrace.cli.tagging import load_tagger, tables_of, tell_bad_rows

if TYPE_CHECKING:
    from labelrace.evaluation.tagging import Measured

# Tags and confusions that are listed.
_MAX_TAGS, _MAX_CONFUSIONS = 20, 10


@options.takes_reading
def measure(
    tagger_file: options.TaggerFile,
    source: Annotated[str, options.argument(help="A table with tags; '-' reads it from standard input.")],
    every: Annotated[bool, typer.Option("--all", help="List all tags, and not only the most frequent ones.")] = False,
    page: Annotated[Path | None, options.option("--page", help="A page to write, .html, with charts.")] = None,
    batch_size: options.BatchSize = 500,
    embed: options.Embed = None,
    as_json: options.AsJson = False,
    reading: Any = None,
) -> None:
    """Measure the quality of a tagger on a table with tags; nothing is learned, and the tagger's file does not change.

    [dim]Example:[/dim] labelrace test tagger.labelrace tagged.csv --page test.html
    """
    from labelrace.base.files import write_atomic
    from labelrace.evaluation.tagging import CONVENTION, PRECISIONS, measure_tagger
    from labelrace.report.page import render_page
    from labelrace.report.tables import print_table
    from labelrace.report.tagger_report import confusions_table, tags_table, tested_document

    if page is not None:
        options.check_out(page, tagger_file, source)
    tagger = load_tagger(tagger_file, embed)
    targets = PRECISIONS if page is not None or as_json else ()
    tested = measure_tagger(tagger, tables_of(source, batch_size, reading), targets)
    tell_bad_rows(reading.on_bad_row)
    most = None if every else _MAX_TAGS
    if page is not None:
        document = tested_document(tested, tagger_file.name, Path(source).name, None)
        write_atomic(page, render_page(document).encode())
    if as_json:
        typer.echo(json.dumps(_facts(tested)))
        return
    rows_of = f"{number_of(len(tested.rows), 'row')} of {source}"
    say(f"{rows_of}, predicted and compared with the tags they have; nothing was learned.")
    say_learned(tested.n_known)
    for line in measure_lines(tested.measures()):
        say(line)
    console = Console()
    print_table(tags_table(tested, most), console)
    if tested.confusions:
        print_table(confusions_table(tested, _MAX_CONFUSIONS), console)
    say(f"{CONVENTION} Calibration is that of the ten likeliest tags of each row.")
    if page is not None:
        say(str(page))


def say_learned(n_known: int) -> None:
    """Warn of rows that were learned before, on which the quality is too high."""
    if n_known:
        rows = number_of(n_known, "row")
        say(f"Warning: {rows} of these had been learned: on such rows a tagger is better than on new ones.", err=True)


def measure_lines(measures: dict[str, float]) -> list[str]:
    """Return measures as lines of text."""
    from labelrace.report.text import measure_label

    labels = {name: measure_label(name) for name in measures}
    width = max(map(len, labels.values()))
    return [f"  {labels[name]:<{width}}  {value:.3f}" for name, value in measures.items()]


def _facts(tested: Measured) -> dict[str, Any]:
    """Return the results of a test as JSON values."""
    bins = tested.reliability
    filled = [i for i, n in enumerate(bins.entries.tolist()) if n]
    return {
        "rows": len(tested.rows),
        "rows_learned_before": tested.n_known,
        **{name: None if math.isnan(value) else value for name, value in tested.measures().items()},
        "tags": {
            tag: {
                "rows": one.tested,
                "predicted": one.predicted,
                "precision": one.precision(),
                "recall": one.recall(),
                "f1": one.f1(),
            }
            for tag, one in tested.counts.items()
        },
        "confusions": [
            {"predicted": wrong, "missed": missed, "rows": n}
            for wrong, missed, n in tested.confusions[:_MAX_CONFUSIONS]
        ],
        "precision_curve": [
            {
                "target": one.target,
                "precision": one.n_right / one.n_given if one.n_given else None,
                "tags": one.n_given,
                "handled": one.n_handled / len(tested.rows),
            }
            for one in tested.targets
        ],
        "calibration": [
            {"probability": float(bins.mean_probability[i]), "right": float(bins.share_present[i])} for i in filled
        ],
    }
