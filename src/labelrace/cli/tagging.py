"""The command on tables with tags: training, predicting, updating, explaining and inspecting a tagger."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from labelrace.base.files import check_target
from labelrace.base.limits import LINE
from labelrace.cli import options
from labelrace.cli.progress import check_learned, learn_batches

if TYPE_CHECKING:
    from labelrace.tables import TagCounts, Tagger
    from labelrace.tables.read import Table

TaggerFile = Annotated[Path, options.argument(metavar="TAGGER", help="A file written by 'labelrace train --tags'.")]

# The number of rows with a tag that is needed to judge how well it is predicted.
_ENOUGH = 10
# The F1 from which a tag counts as predicted well.
_WELL = 0.5
_LISTED = 5


def tables_of(source: str, batch_size: int, delimiter: str | None) -> Iterator[Table]:
    """Yield the rows of a file or of standard input."""
    from labelrace.tables import file_tables, text_tables

    if batch_size < 1:
        raise ValueError(f"--batch-size must be a whole number of at least 1, got {batch_size}.")
    if source == "-":
        # The standard library refuses cells above 131,072 characters, which files may have.
        csv.field_size_limit(LINE.value)
        return text_tables(sys.stdin, batch_size, delimiter or ",")
    return file_tables(source, batch_size, delimiter)


def train_tagger(
    source: str,
    out: Path,
    table: options.TagOptions,
    model: str,
    parameters: list[str] | None,
    batch_size: int,
    seed: int,
    workers: int | None,
    scheduler: str | None,
) -> None:
    """Learn a table with tags, print the kinds of its columns, and save the tagger."""
    from labelrace.base.registry import make_model

    chosen = options.as_parameters(parameters)
    learner = make_model(model, **chosen) if chosen else model
    tagger = table.tagger(model=learner, batch_size=batch_size, random_state=seed)
    if workers is not None or scheduler is not None:
        from labelrace.cli.sharing import train_shared

        if table.delimiter is not None or source == "-":
            raise ValueError("--workers and --scheduler are for files: leave out --delimiter and '-'.")
        typer.echo(train_shared(tagger, model, source, out, None, batch_size, workers, scheduler))
        return
    nothing = "Nothing was learned: the source has no rows with tags."
    stopped = _learn(tagger, tables_of(source, batch_size, table.delimiter), nothing)
    tagger.save(out)
    _end(tagger, f"{model} learned {tagger.n_rows_} rows with {len(tagger.tags_)} tags: {out}", stopped)


def update(
    tagger_file: TaggerFile,
    source: Annotated[
        str, options.argument(help="A table with tags; '-' reads JSON lines or CSV from standard input.")
    ],
    out: Annotated[Path | None, options.option("--out", "-o", help="Another file to write to.")] = None,
    delimiter: options.Delimiter = None,
    batch_size: options.BatchSize = 500,
) -> None:
    """Continue the training of a tagger; its file is replaced as a whole, or not at all.

    [dim]Example:[/dim] labelrace update tagger.labelrace corrected.csv
    """
    tagger = _loaded(tagger_file)
    before = tagger.n_rows_
    check_target(out or tagger_file)
    nothing = f"Nothing was learned: no row of {source} has tags, and {tagger_file} is as it was."
    stopped = _learn(tagger, tables_of(source, batch_size, delimiter), nothing)
    tagger.save(out or tagger_file)
    text = f"Learned {tagger.n_rows_ - before} rows more, {tagger.n_rows_} in all, with {len(tagger.tags_)} tags: "
    _end(tagger, f"{text}{out or tagger_file}", stopped)


def _learn(tagger: Tagger, tables: Iterator[Table], nothing: str) -> BaseException | None:
    """Predict and learn batch by batch, until Ctrl-C or a batch that is wrong; return what stopped it."""
    is_new = not tagger.is_fitted
    before = 0 if is_new else tagger.n_rows_

    def learn(table: Table) -> tuple[int, str]:
        nonlocal is_new
        tagger.prequential_fit(table)
        if is_new and tagger.is_fitted:
            _say_columns(tagger)
            is_new = False
        return table.n_rows, _quality(tagger) if tagger.is_fitted else ""

    rows, stopped = learn_batches(tables, learn)
    check_learned(tagger.is_fitted and tagger.n_rows_ > before, stopped, nothing)
    if left_out := rows - (tagger.n_rows_ - before):
        options.say(f"Skipped {left_out} row{'s' if left_out > 1 else ''} without tags.")
    return stopped


def _end(tagger: Tagger, text: str, stopped: BaseException | None) -> None:
    if stopped is not None:
        options.end_early(stopped, text)
    options.say(text)
    quality = _quality(tagger)
    if not quality:
        return
    options.say(f"Prequential quality ({tagger.quality_['rows']} rows): {quality}.")
    # The tags that were tested often enough, best first.
    tested = [(tag, counts) for tag, counts in tagger.tags_.items() if counts.tested >= _ENOUGH]
    judged = sorted(tested, key=lambda pair: (-pair[1].f1(), pair[0]))
    known = [one for one in judged if one[1].f1() >= _WELL]
    if known:
        options.say(f"Predicted well: {_listed(known[:_LISTED])}.")
    if len(known) < len(judged):
        options.say(f"Not predicted well: {_listed(judged[len(known) :][::-1][:_LISTED])}.")


def _quality(tagger: Tagger) -> str:
    quality = tagger.quality_
    if not quality["rows"]:
        return ""
    return f"example F1 {quality['example_f1']:.3f}, micro F1 {quality['micro_f1']:.3f}"


def _listed(judged: Iterable[tuple[str, TagCounts]]) -> str:
    return ", ".join(f"{tag} ({counts.f1():.2f})" for tag, counts in judged)


def _say_columns(tagger: Tagger) -> None:
    tags, what = [tagger.tags] if isinstance(tagger.tags, str) else list(tagger.tags or []), "tags"
    if isinstance(tagger.tags, str) and tagger.separator_ is not None:
        what += f", separated by {'spaces' if tagger.separator_ == ' ' else repr(tagger.separator_)}"
    kinds = {column.name: str(column) for column in tagger.columns_}
    width = min(max(map(len, [*kinds, *tags])), 40)
    for name, kind in (kinds | dict.fromkeys(tags[:_LISTED], what)).items():
        options.say(f"{name:<{width}}  {kind}")


def predictions(
    tagger: Tagger, tables: Iterator[Table], *, top: int | None, as_csv: bool
) -> Iterator[list[dict[str, Any]]]:
    """Yield for each row of a batch its identifiers, tags and their probabilities."""
    from labelrace.tables import join_tags
    from labelrace.tables.cells import as_texts

    known = [column.name for column in tagger.columns_ if column.kind == "identifier"]
    name, first = tagger.tags if isinstance(tagger.tags, str) else "tags", 0
    for table in tables:
        ids = {column: as_texts(table.columns[column]) for column in known if column in table.columns}
        rows = tagger.predict_scored(table) if top is None else [dict(row) for row in tagger.predict_top(table, top)]
        written = []
        for number, row in enumerate(rows):
            cells: dict[str, Any] = {column: texts[number] for column, texts in ids.items()} or {"row": first + number}
            probabilities = [float(f"{one:.4g}") for one in row.values()]
            if as_csv:
                cells |= {name: join_tags(row, tagger.separator_), "probabilities": ";".join(map(str, probabilities))}
            else:
                cells |= {name: list(row), "probabilities": probabilities}
            written.append(cells)
        first += table.n_rows
        yield written


def explain(
    tagger_file: TaggerFile,
    source: Annotated[
        str, options.argument(help="A file with one row: a JSON object, or a table; '-' for standard input.")
    ],
    tag: Annotated[
        list[str] | None, typer.Option("--tag", help="A tag to explain; repeatable. By default those predicted.")
    ] = None,
    words: Annotated[int, typer.Option(help="Words and values to list for each tag.")] = 10,
    delimiter: options.Delimiter = None,
    as_json: options.AsJson = False,
) -> None:
    """Show which words and values contributed to each tag.

    [dim]Example:[/dim] labelrace explain tagger.labelrace row.json
    """
    tagger, row = _loaded(tagger_file), next(tables_of(source, 2, delimiter), None)
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
        options.say(f"{name} (probability {probabilities[name]:.2f})")
        for feature, amount in parts:
            options.say(f"  {amount:+.3f}  {feature}")


def inspect(
    model_file: Annotated[Path, options.argument(metavar="MODEL", help="A file written by 'labelrace train'.")],
    as_json: options.AsJson = False,
) -> None:
    """Show what a saved tagger or model knows: columns, tags with their frequency and quality, drifts, size.

    [dim]Example:[/dim] labelrace inspect tagger.labelrace
    """
    from labelrace.base.state_file import load
    from labelrace.tables import Tagger

    known = load(model_file)
    model = getattr(known, "model_", known)
    facts: dict[str, Any] = {
        "model": type(model).__name__,
        "bytes": model_file.stat().st_size,
        "features": int(model.n_features_in_),
        "labels": len(model.classes_),
        "drifts": getattr(model, "n_drifts_", None),
    }
    if isinstance(known, Tagger):
        facts |= {
            "rows": known.n_rows_,
            "quality": known.quality_,
            "separator": known.separator_,
            "columns": {column.name: str(column) for column in known.columns_},
            "tags": {tag: {"rows": one.rows, "tested": one.tested, "f1": one.f1()} for tag, one in known.tags_.items()},
        }
    if as_json:
        typer.echo(json.dumps(facts))
        return
    for line in _described(facts):
        options.say(line)


def _described(facts: dict[str, Any]) -> list[str]:
    """Return the facts about a model as lines of text."""
    lines = [f"{facts['model']}, {facts['bytes'] / 1e6:.1f} MB, {facts['features']} features, {facts['labels']} labels"]
    if facts["drifts"] is not None:
        lines.append(f"Drifts found: {facts['drifts']}")
    if "columns" in facts:
        quality = facts["quality"]
        lines.append(f"Rows learned: {facts['rows']}")
        if quality["rows"]:
            lines[-1] += (
                f"; prequential quality: example F1 {quality['example_f1']:.3f}, micro F1 {quality['micro_f1']:.3f}"
            )
        lines += [
            "",
            "Columns",
            *(f"  {name}: {what}" for name, what in facts["columns"].items()),
            "",
            "Tags: rows, F1",
        ]
        ordered = sorted(facts["tags"].items(), key=lambda pair: (-pair[1]["rows"], pair[0]))
        lines += [f"  {tag}: {one['rows']}, " + (f"{one['f1']:.2f}" if one["tested"] else "-") for tag, one in ordered]
    return lines


def _loaded(path: Path) -> Tagger:
    from labelrace.base.state_file import load
    from labelrace.tables import Tagger

    loaded = load(path)
    if not isinstance(loaded, Tagger):
        raise ValueError(f"{path} must be a tagger, made by 'labelrace train --tags', got {type(loaded).__name__}.")
    return loaded
