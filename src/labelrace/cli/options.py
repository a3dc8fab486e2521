"""Options that several subcommands share, and how their texts are read."""

from __future__ import annotations

import functools
import glob
import inspect
import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from labelrace.base.files import check_target

if TYPE_CHECKING:
    from labelrace.evaluation import ModelSpec
    from labelrace.tables import Tagger

# The model if none is named.
DEFAULT_MODEL = "race"

# The exit status of a run in which a model failed.
FAILED = 3

# For parameters without a default, or with one that a help text cannot show.
option, argument = (functools.partial(kind, show_default=False) for kind in (typer.Option, typer.Argument))

Source = Annotated[str, argument(help="A data file, or the name of a dataset (see 'labelrace data list').")]
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

Delimiter = Annotated[
    str | None, option(help="What separates the cells of a CSV file; by default a comma, or a tab for .tsv.")
]


def _columns(what: str) -> Any:
    text = f"With --tags: columns to read as {what}, instead of detecting it. Repeatable, or separated by commas."
    return Annotated[list[str] | None, option(help=text)]


_TAGS = "Read the source as a table with tags: the name of the column of tags, or of columns of 0 and 1."
_SEPARATOR = "With --tags: what separates the tags of a row, such as ';' or 'space'; detected by default."
_UNTAGGED = "With --tags: what a row without tags means: 'unknown' (it is skipped, the default), or 'none'."
_TAG_OPTIONS = {
    "tags": Annotated[str | None, option(help=_TAGS)],
    "text": _columns("text"),
    "category": _columns("categories"),
    "number": _columns("numbers"),
    "date": _columns("dates or times"),
    "id": _columns("identifiers (not learned, but written with predictions)"),
    "drop": _columns("unused"),
    "separator": Annotated[str | None, option(help=_SEPARATOR)],
    "delimiter": Delimiter,
    "untagged": Annotated[str | None, option(help=_UNTAGGED)],
}


class TagOptions(NamedTuple):
    """The options for a table with tags: which columns hold them, and what the others are."""

    tags: list[str]
    columns: dict[str, list[str] | None]
    separator: str | None
    delimiter: str | None
    untagged: str | None

    def tagger(self, **parameters: Any) -> Tagger:
        """Make a tagger for the table."""
        from labelrace.tables import Tagger

        tags = self.tags[0] if len(self.tags) == 1 else self.tags
        if self.untagged is not None:
            parameters = {**parameters, "untagged": self.untagged}
        return Tagger(tags, **self.columns, separator=self.separator, **parameters)  # type: ignore[arg-type]


def takes_tags(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options for tables with tags; it gets them as `table`, which is None without ``--tags``."""

    @functools.wraps(command)
    def with_table(**options: Any) -> None:
        given = {name: options.pop(name) for name in _TAG_OPTIONS}
        command(**options, table=_tag_options(**given))

    signature = inspect.signature(command, eval_str=True)
    own = [parameter for name, parameter in signature.parameters.items() if name != "table"]
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    added = [inspect.Parameter(name, kind, default=None, annotation=note) for name, note in _TAG_OPTIONS.items()]
    with_table.__signature__ = signature.replace(parameters=[*own, *added])  # type: ignore[attr-defined]
    with_table.__annotations__ = {parameter.name: parameter.annotation for parameter in (*own, *added)}
    return with_table


def _tag_options(
    tags: str | None,
    separator: str | None,
    delimiter: str | None,
    untagged: str | None,
    **columns: list[str] | None,
) -> TagOptions | None:
    if tags is None:
        if any([*columns.values(), separator, delimiter, untagged]):
            *others, last = (f"--{name}" for name in _TAG_OPTIONS if name != "tags")
            raise ValueError(f"{', '.join(others)} and {last} need --tags.")
        return None
    named = {kind: None if texts is None else as_names(",".join(texts)) for kind, texts in columns.items()}
    return TagOptions(as_names(tags), named, separator, delimiter, untagged)


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


def _files_of(source: str) -> list[str | Path | int]:
    """Return what a source may be read from; not all of it need exist."""
    from labelrace.streams.catalog import find_dataset
    from labelrace.streams.files import plain_path
    from labelrace.streams.schema import schema_path

    if source == "-":
        return [0]
    files = [Path(source), *map(Path, glob.glob(source))]
    if not files[0].exists():
        with suppress(OSError):
            files.append(find_dataset(source))
    # Those beside a file tell its labels.
    beside = [
        other for file in files if file.name for other in (plain_path(file).with_suffix(".xml"), schema_path(file))
    ]
    return [*files, *beside]


def as_names(text: str) -> list[str]:
    """Split names at commas."""
    return [name for part in text.split(",") if (name := part.strip())]


def as_parameters(texts: list[str] | None) -> dict[str, Any]:
    """Turn ``name=value`` texts into parameters; a value is read as JSON where it is JSON, and as text elsewhere."""
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
