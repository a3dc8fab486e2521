"""``labelrace tags``: list the tags of a tagger; rename, merge, drop and add them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from typer.core import TyperGroup

from labelrace.base.table_formats import TABLES
from labelrace.cli import options
from labelrace.cli.messages import number_of, say
from labelrace.cli.tagging import load_tagger, load_whole


class _ListByDefault(TyperGroup):
    """A group whose first word may be a tagger: its tags are listed."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Take a word that is no subcommand for the argument of ``list``."""
        is_tagger = bool(args) and args[0] not in self.commands and not args[0].startswith("-")
        return super().parse_args(ctx, ["list", *args] if is_tagger else args)


app = typer.Typer(
    cls=_ListByDefault, no_args_is_help=True, help="List the tags of a tagger; rename, merge, drop and add them."
)

_Out = Annotated[Path | None, options.option("--out", "-o", help="A new file to save to, instead of replacing TAGGER.")]


@app.command("list")
def list_(tagger_file: options.TaggerFile, embed: options.Embed = None, as_json: options.AsJson = False) -> None:
    """List all tags: in how many rows they were, how well they were predicted, and their parents.

    [dim]Example:[/dim] labelrace tags list tagger.labelrace
    """
    from labelrace.report.tables import print_table, text_table
    from labelrace.tables import TagCounts
    from labelrace.tables.tag_details import parent_of

    state = load_tagger(tagger_file, embed).state
    tags = {tag: state.counts.get(tag, TagCounts()) for tag in {**state.counts, **state.details}}
    listed = dict(sorted(tags.items(), key=lambda pair: (-pair[1].rows, pair[0])))
    parents = {tag: parent_of(tag, state.details) for tag in listed}
    if as_json:
        facts = {
            tag: {
                "rows": one.rows,
                "tested": one.tested,
                "precision": one.precision() if one.predicted else None,
                "recall": one.recall() if one.tested else None,
                "parent": parents[tag],
            }
            for tag, one in listed.items()
        }
        typer.echo(json.dumps(facts))
        return
    rows = {
        tag: [
            f"{one.rows:,}",
            f"{one.precision():.2f}" if one.predicted else "–",
            f"{one.recall():.2f}" if one.tested else "–",
            *([parents[tag] or ""] if any(parents.values()) else []),
        ]
        for tag, one in listed.items()
    }
    titles = ["Rows", "Precision", "Recall", *(["Parent"] if any(parents.values()) else [])]
    counted = number_of(len(listed), "tag")
    caption = f"{counted}. Precision and recall are those of rows that were predicted before they were learned."
    print_table(text_table("tags", caption, titles, rows, "Tag"), Console())


@app.command()
def rename(
    tagger_file: options.TaggerFile,
    old: Annotated[str, options.argument(help="A tag of the tagger.")],
    new: Annotated[str, options.argument(help="Its new name.")],
    out: _Out = None,
    force: options.Force = False,
    embed: options.Embed = None,
) -> None:
    """Rename a tag; the old name in later rows means the new one.

    [dim]Example:[/dim] labelrace tags rename tagger.labelrace login access
    """
    tagger, whole = load_whole(tagger_file, embed)
    tagger.rename_labels({old: new})
    _save(whole, tagger_file, out, force, f"Renamed {old} to {new}")


@app.command()
def merge(
    tagger_file: options.TaggerFile,
    tags: Annotated[list[str], options.argument(help="Tags of the tagger.")],
    into: Annotated[str, options.option(help="One of them, another tag, or a new name.")],
    out: _Out = None,
    force: options.Force = False,
    embed: options.Embed = None,
) -> None:
    """Merge tags into one; each of them means this one in later rows.

    [dim]Example:[/dim] labelrace tags merge tagger.labelrace billing returns --into money
    """
    tagger, whole = load_whole(tagger_file, embed)
    tagger.merge_labels(tags, into)
    _save(whole, tagger_file, out, force, f"Merged {', '.join(tags)} into {into}")


@app.command()
def drop(
    tagger_file: options.TaggerFile,
    tags: Annotated[list[str], options.argument(help="Tags of the tagger.")],
    out: _Out = None,
    force: options.Force = False,
    embed: options.Embed = None,
) -> None:
    """Retire tags: they are no longer predicted, and ignored in later rows.

    [dim]Example:[/dim] labelrace tags drop tagger.labelrace search
    """
    tagger, whole = load_whole(tagger_file, embed)
    tagger.drop_labels(tags)
    _save(whole, tagger_file, out, force, f"Dropped {', '.join(tags)}")


@app.command()
def add(
    tagger_file: options.TaggerFile,
    tags: Annotated[
        list[str],
        options.argument(help="Names; or one table with the columns tag, synonyms, description and parent."),
    ],
    out: _Out = None,
    force: options.Force = False,
    embed: options.Embed = None,
) -> None:
    """Add tags that no row has had yet, or details of known ones; they are suggested by their names at once.

    [dim]Example:[/dim] labelrace tags add tagger.labelrace tags.csv
    """
    from labelrace.tables.tag_details import read_details

    files = [tag for tag in tags if Path(tag).suffix.lower() in TABLES]
    if files and len(tags) > 1:
        raise ValueError(f"TAGS must be names, or one table, got {', '.join(tags)}: add the table by itself.")
    details = read_details(tags[0] if files else tags)
    given = {tag: one._asdict() for tag, one in details.items()}
    tagger, whole = load_whole(tagger_file, embed)
    tagger.add_labels(given)
    _save(whole, tagger_file, out, force, f"Added or described {number_of(len(given), 'tag')}")


def _save(whole: Any, tagger_file: Path, out: Path | None, force: bool, message: str) -> None:
    """Save a changed tagger whole, and say what changed."""
    target = options.check_new(out, tagger_file, force)
    options.check_out(target)
    whole.save(target)
    say(f"{message}; saved to {target}.")
