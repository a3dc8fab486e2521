"""``labelrace compare``: two taggers on one tagged file, side by side."""

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
from labelrace.cli.test import say_learned

if TYPE_CHECKING:
    from labelrace.evaluation.tagging import Measured

_MAX_TAGS, _MAX_ROWS = 10, 5


@options.takes_reading
def compare(
    first_file: Annotated[Path, options.argument(metavar="A", help="A tagger.")],
    second_file: Annotated[Path, options.argument(metavar="B", help="Another tagger.")],
    source: Annotated[str, options.argument(metavar="FILE", help="A table with tags.")],
    batch_size: options.BatchSize = 500,
    embed: options.Embed = None,
    as_json: options.AsJson = False,
    reading: Any = None,
) -> None:
    """Compare two taggers on a table with tags; nothing is learned.

    [dim]Example:[/dim] labelrace compare old.labelrace new.labelrace tagged.csv
    """
    from labelrace.evaluation.tagging import CONVENTION, compare_tested, measure_tagger
    from labelrace.report.tables import print_table, text_table
    from labelrace.report.text import as_signed, measure_label

    if source == "-":
        raise ValueError("FILE must be a file, as it is read twice, got '-'.")
    one, two = (
        measure_tagger(load_tagger(path, embed), tables_of(source, batch_size, reading))
        for path in (first_file, second_file)
    )
    tell_bad_rows(reading.on_bad_row)
    say_learned(max(one.n_known, two.n_known))
    one, two = _shared(one, two)
    found, tags, rows = compare_tested(one, two), _tags(one, two), _rows(one, two)
    if as_json:
        measures = {name: {k: _number(v) for k, v in values._asdict().items()} for name, values in found.items()}
        typer.echo(json.dumps({"rows": len(one.rows), "measures": measures, "tags": tags, "differing_rows": rows}))
        return
    rows_of = f"{number_of(len(one.rows), 'row')} of {source}"
    say(f"{rows_of}, predicted by A, {first_file}, and B, {second_file}; nothing was learned.")
    lines = {
        measure_label(name): [
            f"{values.first:.3f}",
            f"{values.second:.3f}",
            f"{values.difference:+.3f}",
            "–" if math.isnan(values.standard_error) else f"{values.standard_error:.3f}",
        ]
        for name, values in found.items()
    }
    console = Console()
    caption = f"{CONVENTION} The standard error is that of the paired difference of rows."
    print_table(text_table("measures", caption, ["A", "B", "B - A", "Standard error"], lines, ""), console)
    cells = {tag: [str(n), f"{a:.2f}", f"{b:.2f}", as_signed(b - a)] for tag, n, a, b in (t.values() for t in tags)}
    if cells:
        print_table(
            text_table("tags", "F1 of the tags that differ most.", ["Rows", "A", "B", "B - A"], cells, "Tag"), console
        )
    for row in rows:
        texts = (f"{name}: {', '.join(row[name]) or '–'}" for name in ("tags", "A", "B"))
        say(f"Row {row['row']}. {'. '.join(texts)}.")


def _shared(one: Measured, two: Measured) -> tuple[Measured, Measured]:
    """Keep the rows that both have tested: they may read rows without tags differently."""
    numbers = {row.number for row in one.rows} & {row.number for row in two.rows}
    kept = [tested._replace(rows=[row for row in tested.rows if row.number in numbers]) for tested in (one, two)]
    return kept[0], kept[1]


def _number(value: float) -> float | None:
    return None if math.isnan(value) else value


def _tags(one: Measured, two: Measured) -> list[dict[str, Any]]:
    """Return the tags with the largest difference of F1, times their number of rows."""
    a, b = one.counts, two.counts
    both = [tag for tag in a if tag in b and a[tag].f1() != b[tag].f1()]
    both.sort(key=lambda tag: -abs(a[tag].f1() - b[tag].f1()) * max(a[tag].tested, 1))
    return [{"tag": tag, "rows": a[tag].tested, "A": a[tag].f1(), "B": b[tag].f1()} for tag in both[:_MAX_TAGS]]


def _rows(one: Measured, two: Measured) -> list[dict[str, Any]]:
    """Return some rows that were predicted most differently; the first row of the file is 1."""
    pairs = [(a, b) for a, b in zip(one.rows, two.rows, strict=True) if a.predicted != b.predicted]
    pairs.sort(key=lambda pair: -abs(pair[0].f1 - pair[1].f1))
    return [
        {"row": a.number + 1, "tags": sorted(a.true), "A": sorted(a.predicted), "B": sorted(b.predicted)}
        for a, b in pairs[:_MAX_ROWS]
    ]
