"""``labelrace explain`` and ``labelrace inspect``: what a saved model knows, and why it predicts a tag."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from labelrace.cli import options
from labelrace.cli.messages import say
from labelrace.cli.tagging import load_tagger, quality_text, tables_of


def explain(
    tagger_file: options.TaggerFile,
    source: Annotated[
        str, options.argument(help="A file with one row: a JSON object, or a table; '-' for standard input.")
    ],
    tag: Annotated[
        list[str] | None, typer.Option("--tag", help="A tag to explain; by default those predicted. Repeatable.")
    ] = None,
    words: Annotated[int, typer.Option(help="Number of words and values to list for each tag.")] = 10,
    delimiter: options.Delimiter = None,
    as_json: options.AsJson = False,
) -> None:
    """Show which words and values of a row contribute to its tags.

    [dim]Example:[/dim] labelrace explain tagger.labelrace row.json
    """
    tagger, row = load_tagger(tagger_file), next(tables_of(source, 2, delimiter), None)
    if row is None or row.n_rows != 1:
        raise ValueError(f"{source} must have one row, got {'none' if row is None else 'more'}.")
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


def inspect(model_file: options.ModelFile, as_json: options.AsJson = False) -> None:
    """Show what a saved model or tagger knows: columns, tags with their frequency and F1, drifts, size.

    [dim]Example:[/dim] labelrace inspect tagger.labelrace
    """
    from labelrace.base.state_file import load
    from labelrace.tables import Tagger

    loaded = load(model_file)
    model = getattr(loaded, "model_", loaded)
    facts: dict[str, Any] = {
        "model": type(model).__name__,
        "bytes": model_file.stat().st_size,
        "features": int(model.n_features_in_),
        "labels": len(model.classes_),
        "alarms": getattr(model, "n_alarms_", None),
        "drifts": getattr(model, "n_drifts_", None),
    }
    if isinstance(loaded, Tagger):
        tags = loaded.tags_.items()
        facts |= {
            "rows": loaded.n_rows_,
            "quality": loaded.quality_,
            "separator": loaded.separator_,
            "columns": {column.name: str(column) for column in loaded.columns_},
            "tags": {tag: {"rows": counts.rows, "tested": counts.tested, "f1": counts.f1()} for tag, counts in tags},
        }
    if as_json:
        typer.echo(json.dumps(facts))
        return
    for line in _lines(facts):
        say(line)


def _lines(facts: dict[str, Any]) -> list[str]:
    """Return the facts about a model as lines of text."""
    lines = [f"{facts['model']}, {facts['bytes'] / 1e6:.1f} MB, {facts['features']} features, {facts['labels']} labels"]
    if facts["drifts"] is not None:
        lines.append(f"Drift: {facts['alarms']} alarms, {facts['drifts']} confirmed")
    if "columns" not in facts:
        return lines
    quality = quality_text(facts["quality"])
    lines.append(f"Rows learned: {facts['rows']}" + (f"; prequential quality: {quality}" if quality else ""))
    lines += ["", "Columns", *(f"  {name}: {kind}" for name, kind in facts["columns"].items()), "", "Tags: rows, F1"]
    most_frequent_first = sorted(facts["tags"].items(), key=lambda pair: (-pair[1]["rows"], pair[0]))
    for tag, counts in most_frequent_first:
        lines.append(f"  {tag}: {counts['rows']}, " + (f"{counts['f1']:.2f}" if counts["tested"] else "-"))
    return lines
