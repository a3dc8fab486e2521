"""Options that several subcommands share, and the reading of their texts."""

from __future__ import annotations

import functools
import glob
import inspect
import json
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from labelrace.base.files import check_target

if TYPE_CHECKING:
    from labelrace.evaluation import ModelSpec
    from labelrace.streams.table_sources import Reading
    from labelrace.tables import Tagger

# The model if none is named.
DEFAULT_MODEL = "race"

# The exit status of a run in which a model failed.
FAILED = 3

# For parameters without a default, or with one that a help text cannot show.
option, argument = (functools.partial(kind, show_default=False) for kind in (typer.Option, typer.Argument))

Source = Annotated[str, argument(help="A data file, or the name of a dataset (see 'labelrace data list').")]
Sources = Annotated[
    list[str],
    argument(
        metavar="SOURCE...",
        help="Data files, patterns such as 'tickets-*.csv', or the name of a dataset (see 'labelrace data list'). "
        "Several files must be tables with tags, or be learned by --workers.",
    ),
]
Tables = Annotated[
    list[str],
    argument(
        metavar="SOURCE...",
        help="Tables with tags, or patterns such as 'tickets-*.csv'; '-' reads JSON lines or CSV from standard input.",
    ),
]
Vocabulary = Annotated[
    Path | None,
    option(help="A table of possible tags, with the columns tag, synonyms, description and parent."),
]
Force = Annotated[bool, typer.Option("--force", help="Replace the file if it exists, without asking.")]
Confirmed = Annotated[
    bool,
    typer.Option(
        "--confirmed",
        help="Somebody has looked at all rows of a table that predict has written: learn also those whose tags are "
        "unchanged.",
    ),
]
ModelFile = Annotated[Path, argument(metavar="MODEL", help="A file written by 'labelrace train'.")]
TaggerFile = Annotated[Path, argument(metavar="TAGGER", help="A file written by 'labelrace train --tags'.")]
Labels = Annotated[
    str | None,
    option(
        help="Which columns are labels: a Mulan XML file; a number (the last n columns, or the first n if negative); "
        "names separated by commas; a prefix such as 'label_*'; or one column of label lists. By default the file "
        "itself, or the .xml or .schema.json file beside it, determines them."
    ),
]
Models = Annotated[
    list[str] | None,
    option(
        "--model",
        "-m",
        help="A model (see 'labelrace models'), or module:Class for your own; label=model gives it a label. "
        "Repeatable.",
    ),
]
ModelParameters = Annotated[
    list[str] | None,
    option("--set", help="A parameter of a model: model.parameter=value, with the model's name or label. Repeatable."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables or text.")]
BatchSize = Annotated[int, typer.Option(help="Rows in a batch.")]
Runs = Annotated[int, typer.Option(help="Number of runs of each model, each with another seed.")]
Seed = Annotated[int, typer.Option(help="Seed of the random numbers.")]

Workers = Annotated[
    int | None,
    option(
        "--workers",
        "--jobs",
        help="Number of processes on this machine. By default 1 to train and to predict, and one for each processor to "
        "run several models.",
    ),
]
Scheduler = Annotated[
    str | None, option(help="Address of a Dask scheduler, tcp://host:port: work on its cluster instead.")
]

# Ways to write what no shell has a key for.
_TABS = {"tab": "\t", "\\t": "\t"}
_READING = {
    "delimiter": Annotated[
        str | None, option(help="Cell separator of a CSV file; detected from the header by default.")
    ],
    "encoding": Annotated[
        str | None, option(help="Encoding of a CSV file, such as cp1252; detected by default, mostly UTF-8.")
    ],
    "sheet": Annotated[str | None, option(help="The sheet of an Excel file; by default the first one.")],
    "skip_bad_rows": Annotated[
        bool, typer.Option("--skip-bad-rows", help="Leave out rows that cannot be read or learned, and list them.")
    ],
}


def reading_of(delimiter: str | None, encoding: str | None, sheet: str | None, skip_bad_rows: bool | None) -> Reading:
    """Return the options for reading files."""
    from labelrace.cli.bad_rows import BadRows
    from labelrace.streams.table_sources import Reading

    delimiter = _TABS.get(delimiter or "", delimiter)
    if delimiter is not None and (len(delimiter) != 1 or delimiter in '"\r\n'):
        raise ValueError(f"--delimiter must be one character, such as ';', or 'tab', got {delimiter!r}: correct it.")
    for name, text in (("encoding", encoding), ("sheet", sheet)):
        if text == "":
            raise ValueError(f"--{name} must be a name, got '': leave it out to have it found.")
    return Reading(delimiter, encoding, sheet, BadRows() if skip_bad_rows else None)


def given_of(reading: Reading) -> list[str]:
    """Return the options by which it was said how files are to be read."""
    named = zip(_READING, reading, strict=True)
    return [f"--{name.replace('_', '-')}" for name, value in named if value is not None]


def takes_reading(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options for reading tables; it gets them as `reading`."""
    return _with_options(command, _READING, "reading", reading_of)


_EMBED = (
    "With --tags: an embedding model for a text column, COLUMN=DIR: a folder with model.onnx and tokenizer.json. "
    "Repeatable."
)
Embed = Annotated[
    list[str] | None,
    option(help="The folder of the tagger's embedding model of a column now: COLUMN=DIR. Repeatable."),
]


def _columns(what: str) -> Any:
    text = f"With --tags: columns to read as {what}, instead of detecting it. Repeatable, or separated by commas."
    return Annotated[list[str] | None, option(help=text)]


_TAGS = (
    "Read the source as a table with tags: the name of the column of tags, or of columns of 0 and 1 (a single one with "
    "a comma behind)."
)
_SEPARATOR = "With --tags: the separator of the tags of a row, such as ';' or 'space'; detected by default."
_UNTAGGED = "With --tags: the meaning of a row without tags: 'unknown' (it is skipped, the default), or 'none'."
_FOLD = "With --tags: tags that differ by case, spaces or composition only are one tag."
_SINGLE = "With --tags: predict one tag for each row; by default if all rows have one."
_TAG_OPTIONS = {
    "tags": Annotated[list[str] | None, option(help=_TAGS)],
    "text": _columns("text"),
    "category": _columns("categories"),
    "number": _columns("numbers"),
    "date": _columns("dates or times"),
    "id": _columns("identifiers (not learned, but written with predictions)"),
    "drop": _columns("unused"),
    "embed": Annotated[list[str] | None, option(help=_EMBED)],
    "separator": Annotated[str | None, option(help=_SEPARATOR)],
    "untagged": Annotated[str | None, option(help=_UNTAGGED)],
    "fold_tags": Annotated[bool, typer.Option("--fold-tags", help=_FOLD)],
    "single": Annotated[bool | None, option("--single/--no-single", help=_SINGLE)],
    **_READING,
}


class TagOptions(NamedTuple):
    """The options for a table with tags: the columns of tags, and the kinds of the others."""

    tags: str | list[str]
    columns: dict[str, list[str] | None]
    parameters: dict[str, Any]  # further parameters of the tagger
    reading: Reading

    def tagger(self, **parameters: Any) -> Tagger:
        """Make a tagger for the table."""
        from labelrace.tables import Tagger

        return Tagger(self.tags, **self.columns, **{**self.parameters, **parameters})  # type: ignore[arg-type]


def takes_tags(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options for tables with tags; it gets them as `table`, which is None without ``--tags``."""
    return _with_options(command, _TAG_OPTIONS, "table", _tag_options)


def _with_options(
    command: Callable[..., None], options: dict[str, Any], name: str, make: Callable[..., Any]
) -> Callable[..., None]:
    """Give a command further options; it gets the result of `make` as the parameter `name`."""

    @functools.wraps(command)
    def with_options(**given: Any) -> None:
        made = make(**{option: given.pop(option) for option in options})
        command(**given, **{name: made})

    signature = inspect.signature(command, eval_str=True)
    own = [parameter for other, parameter in signature.parameters.items() if other != name]
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    added = [
        inspect.Parameter(option, kind, default=False if note.__origin__ is bool else None, annotation=note)
        for option, note in options.items()
    ]
    with_options.__signature__ = signature.replace(parameters=[*own, *added])  # type: ignore[attr-defined]
    with_options.__annotations__ = {parameter.name: parameter.annotation for parameter in (*own, *added)}
    return with_options


def _tag_options(
    tags: list[str] | None,
    separator: str | None,
    untagged: str | None,
    embed: list[str] | None,
    fold_tags: bool,
    single: bool | None,
    delimiter: str | None,
    encoding: str | None,
    sheet: str | None,
    skip_bad_rows: bool,
    **columns: list[str] | None,
) -> TagOptions | None:
    reading = delimiter, encoding, sheet, skip_bad_rows
    if not tags:
        flags = fold_tags or None, skip_bad_rows or None
        given = [*columns.values(), separator, untagged, embed, single, delimiter, encoding, sheet, *flags]
        if any(one is not None for one in given):
            *others, last = (f"--{name.replace('_', '-')}" for name in _TAG_OPTIONS if name != "tags")
            raise ValueError(f"{', '.join(others)} and {last} need --tags.")
        return None
    named = {kind: None if texts is None else as_names(",".join(texts)) for kind, texts in columns.items()}
    parameters: dict[str, Any] = {"separator": separator, "fold_tags": fold_tags}
    parameters |= {} if untagged is None else {"untagged": untagged}
    parameters |= {} if single is None else {"single": single}
    parameters |= {"embed": as_folders(embed)} if embed else {}
    if len(tags) > 1:
        raise ValueError(f"--tags must be given once, got {' and '.join(tags)}: separate columns of 0 and 1 by commas.")
    names = as_names(tags[0])
    return TagOptions(
        names if "," in tags[0] else names[0] if names else tags[0], named, parameters, reading_of(*reading)
    )


def as_folders(texts: list[str] | None) -> dict[str, str]:
    """Turn the texts of ``--embed`` into folders by column.

    Examples
    --------
    >>> as_folders(["title=models/small"])
    {'title': 'models/small'}
    """
    pairs = [text.partition("=")[::2] for text in texts or ()]
    for text, (column, folder) in zip(texts or (), pairs, strict=True):
        if not column or not folder:
            raise ValueError(f"--embed must be COLUMN=DIR, for instance title=models/small, got {text!r}.")
    return dict(pairs)


def as_labels(text: str | None) -> Any:
    """Turn the text of ``--labels`` into the argument of `labelrace.streams.open_stream`."""
    if text is None:
        return None
    if text.lstrip("+-").isdigit():
        return int(text)
    if text.lower().endswith(".xml") or Path(text).is_file():
        return Path(text)
    return text.split(",") if "," in text else text


def check_out(out: Path, *sources: str | Path | None) -> None:
    """Refuse a file that cannot be written, or that the command reads: every command that reads and writes calls this.

    `sources` are files, patterns and names of datasets, as the user gave them, and ``-`` for standard input.
    """
    check_target(out, *(file for source in sources if source is not None for file in _files_of(str(source))))


def check_replaces(out: Path, force: bool, instead: str = ", or use 'labelrace update'") -> None:
    """Ask before a file is replaced; without a terminal, refuse to. ``instead`` says what else may be done."""
    if force or not out.exists() or not out.stat().st_size:
        return
    if not (sys.stdin and sys.stdin.isatty() and sys.stderr and sys.stderr.isatty()):
        raise ValueError(f"{out} exists: name another file, add --force to replace it{instead}.")
    if not typer.confirm(f"{out} exists. Replace it?", err=True):
        raise ValueError(f"{out} is as it was: name another file{instead}.")


def check_new(out: Path | None, tagger_file: Path, force: bool) -> Path:
    """Return where a changed tagger is saved: in its own file, or in another, which is not replaced without asking."""
    if out is not None and not (out.exists() and out.samefile(tagger_file)):
        check_replaces(out, force, "")
    return out or tagger_file


def partial_target(out: Path) -> tuple[Path, list[str]]:
    """Return where a training that was stopped early is saved: beside a file that exists, and a sentence on that."""
    if not out.exists() or not out.stat().st_size:
        return out, []
    return out.with_name(f"{out.name}.partial"), [f"{out} is as it was."]


def matching_files(sources: list[str]) -> list[str]:
    """Return sources with patterns replaced by the files that they match, in order; others stay as they are."""
    files = list[str]()
    for source in sources:
        if source == "-" or Path(source).exists() or not glob.has_magic(source):
            files.append(source)
        elif matches := sorted(glob.glob(source)):
            files += matches
        else:
            raise ValueError(f"There must be files that {source!r} matches, got none: check the pattern.")
    if len(files) > 1:
        absent = [file for file in files if not Path(file).is_file()]
        if "-" in files:
            raise ValueError("Standard input, '-', must be the only source: leave out the others, or name files.")
        if absent:
            raise ValueError(f"There is no file {absent[0]}: check its name; nothing was learned.")
    return files


def _files_of(source: str) -> list[str | Path | int]:
    """Return the files that a source may be read from; not all of them need exist."""
    from labelrace.streams.catalog import find_dataset
    from labelrace.streams.files import plain_path
    from labelrace.streams.schema import schema_path

    if source == "-":
        return [0]
    files = [Path(source), *map(Path, glob.glob(source))]
    if not files[0].exists():
        with suppress(OSError):
            files.append(find_dataset(source))
    # Files beside a file define its labels.
    beside = [
        other for file in files if file.name for other in (plain_path(file).with_suffix(".xml"), schema_path(file))
    ]
    return [*files, *beside]


def as_names(text: str) -> list[str]:
    """Split names at commas."""
    return [name for part in text.split(",") if (name := part.strip())]


def as_parameters(texts: list[str] | None) -> dict[str, Any]:
    """Turn ``name=value`` texts into parameters; a value is read as JSON if it is valid JSON, else as text."""
    parameters = {}
    for text in texts or []:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise ValueError(f"--set must be name=value, for instance n_components=8, got {text!r}.")
        try:
            parameters[name] = json.loads(value)
        except json.JSONDecodeError:
            parameters[name] = value
    return parameters


def as_specs(models: list[str], texts: list[str] | None) -> list[ModelSpec]:
    """Turn ``--model`` and ``--set`` into models: ``label=name``, and ``label.parameter=value``.

    Examples
    --------
    >>> [(spec.label, spec.name, spec.parameters) for spec in as_specs(["race", "fast=race"], ["fast.half_life=500"])]
    [('race', 'race', {}), ('fast', 'race', {'half_life': 500})]
    """
    from labelrace.evaluation import ModelSpec

    pairs = [text.rpartition("=")[::2] if "=" in text else (text, text) for text in models]
    parameters: dict[str, dict[str, Any]] = {label: {} for label, _ in pairs}
    for name, value in as_parameters(texts).items():
        label, _, parameter = name.rpartition(".")
        if label not in parameters:
            raise ValueError(
                f"--set must be model.parameter=value with one of the models {', '.join(parameters)}, got {name!r}."
            )
        parameters[label][parameter] = value
    return [ModelSpec(name, parameters[label], label) for label, name in pairs]
