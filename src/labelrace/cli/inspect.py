"""``labelrace explain`` and ``labelrace inspect``: facts about a saved model, and the reasons for a tag."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from labelrace.cli import options
from labelrace.cli.messages import say
from labelrace.cli.tagging import load_tagger, tables_of

if TYPE_CHECKING:
    from labelrace.streams.table_sources import Reading
    from labelrace.tables import Tagger
    from labelrace.tables.read import Table

# Rows of a table that are searched at a time.
_SEARCHED = 500
# Tags that are listed.
_MAX_TAGS = 20


@options.takes_reading
def explain(
    tagger_file: options.TaggerFile,
    source: Annotated[
        str,
        options.argument(
            help="A file with one row: a JSON object, or a table; '-' for standard input. A table of several with --id."
        ),
    ],
    id_: Annotated[
        str | None, options.option("--id", help="The row of the table to explain, by its identifier.")
    ] = None,
    tag: Annotated[
        list[str] | None, typer.Option("--tag", help="A tag to explain; by default those predicted. Repeatable.")
    ] = None,
    words: Annotated[int, typer.Option(help="Number of words and values to list for each tag.")] = 10,
    embed: options.Embed = None,
    as_json: options.AsJson = False,
    reading: Any = None,
) -> None:
    """Show which words and values of a row contribute to its tags.

    [dim]Examples:[/dim]

    labelrace explain tagger.labelrace row.json

    labelrace explain tagger.labelrace new.csv --id T-7
    """
    tagger = load_tagger(tagger_file, embed)
    row = _only_row(source, reading) if id_ is None else _row_by_id(tagger, source, reading, id_)
    explained = tagger.explain(row, tag or None, words)
    probabilities = tagger.predict_proba(row)[0]
    if as_json:
        content = {
            name: {"probability": probabilities[name], "features": dict(parts)} for name, parts in explained.items()
        }
        typer.echo(json.dumps(content))
        return
    for name, parts in explained.items():
        say(f"{name} (probability {probabilities[name]:.2f})")
        for feature, amount in parts:
            say(f"  {amount:+.3f}  {feature}")


def _only_row(source: str, reading: Reading) -> Table:
    """Return the only row of a table."""
    row = next(tables_of(source, 2, reading), None)
    if row is None or row.n_rows != 1:
        got = "none" if row is None or not row.n_rows else "more: name one by --id"
        raise ValueError(f"{source} must have one row, got {got}.")
    return row


def _row_by_id(tagger: Tagger, source: str, reading: Reading, wanted: str) -> Table:
    """Return the row of a table that has an identifier in any of its columns of identifiers."""
    from labelrace.tables.cells import as_name, as_texts

    columns = [column.name for column in tagger.columns_ if column.kind == "identifier"]
    if not columns:
        raise ValueError("--id needs a column of identifiers, but the tagger knows none: train it with --id COLUMN.")
    for table in tables_of(source, _SEARCHED, reading):
        for name in (name for name in columns if name in table.columns):
            ids = list(map(as_name, as_texts(table.columns[name])))
            if as_name(wanted) in ids:
                return table.take([ids.index(as_name(wanted))])
    raise ValueError(f"{source} must have a row with the identifier {wanted!r} ({', '.join(columns)}), got none.")


def inspect(
    model_file: options.ModelFile,
    every: Annotated[bool, typer.Option("--all", help="List all tags, and not only the most frequent ones.")] = False,
    embed: options.Embed = None,
    as_json: options.AsJson = False,
) -> None:
    """Show what a saved model or tagger knows: columns, tags with their frequency and F1, drifts, size.

    [dim]Example:[/dim] labelrace inspect tagger.labelrace
    """
    from labelrace.base.fitted_attributes import model_facts
    from labelrace.base.state_file import load
    from labelrace.delayed import DelayedLabels
    from labelrace.report.tagger_report import precisions_of
    from labelrace.tables import Tagger
    from labelrace.tables.tagger_facts import tagger_facts

    found = load(model_file, embed=options.as_folders(embed))
    loaded: Any = found.model if isinstance(found, DelayedLabels) else found
    model = getattr(loaded, "model_", loaded)
    facts = model_facts(model) | {"bytes": model_file.stat().st_size}
    if isinstance(loaded, Tagger):
        facts |= tagger_facts(loaded) | {"precision_curve": [one._asdict() for one in precisions_of(loaded)]}
    if as_json:
        typer.echo(json.dumps(facts))
        return
    for line in _lines(facts, None if every else _MAX_TAGS):
        say(line)


def _lines(facts: dict[str, Any], n_listed: int | None) -> list[str]:
    """Return the facts about a model as lines of text, with so many tags; None is all."""
    from labelrace.tables.tagger_facts import quality_text

    lines = [f"{facts['model']}, {facts['bytes'] / 1e6:.1f} MB, {facts['features']} features, {facts['labels']} labels"]
    if facts["drifts"] is not None:
        lines.append(f"Drift: {facts['alarms']} alarms, {facts['drifts']} confirmed")
    if "columns" not in facts:
        return lines
    quality = quality_text(facts["quality"])
    curve = facts["precision_curve"]
    lines.append(f"Rows learned: {facts['rows']}" + (f"; prequential quality: {quality}" if quality else ""))
    if curve:
        lines += ["", "Target precision: share of rows that get tags, on recent rows"]
        lines += [f"  {one['precision']:.2f}: {one['handled']:.0%}" for one in curve]
    lines += ["", "Columns", *(f"  {name}: {kind}" for name, kind in facts["columns"].items())]
    lines += ["", "Tags: rows, F1, precision, recall"]
    for tag, counts in list(facts["tags"].items())[:n_listed]:
        values = ", ".join(f"{counts[name]:.2f}" for name in ("f1", "precision", "recall"))
        lines.append(f"  {tag}: {counts['rows']}, " + (values if counts["tested"] else "-"))
    if n_listed is not None and (n_more := len(facts["tags"]) - n_listed) > 0:
        lines.append(f"  and {n_more:,} more, see --all")
    return lines
