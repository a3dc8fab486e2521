"""Options that several subcommands share, and what their texts mean."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

# What `labelrace report` can write; labelrace.report.FORMATS, without importing it for a help text.
REPORT_FORMATS = ("html", "csv", "md", "tex", "png", "svg")

__all__ = [
    "REPORT_FORMATS",
    "Labels",
    "Models",
    "Seed",
    "Source",
    "as_labels",
    "as_measures",
    "as_names",
    "as_parameters",
    "default_model",
]

Source = Annotated[
    str, typer.Argument(help="A data file, or the name of a dataset; see 'labelrace data list'.", show_default=False)
]
Labels = Annotated[
    str | None,
    typer.Option(
        help="Which columns are labels: a Mulan XML file, a count (the last n; negative: the first), names with commas "
        "between them, a prefix such as 'label_*', or a column of label lists. By default the file tells.",
        show_default=False,
    ),
]
Models = Annotated[
    list[str] | None,
    typer.Option("--model", "-m", help="A model, see 'labelrace models'; repeatable.", show_default=False),
]
Seed = Annotated[int, typer.Option(help="What all randomness is derived from.")]


def as_labels(text: str | None) -> Any:
    """Turn the text of ``--labels`` into what readers take."""
    if text is None:
        return None
    if text.lstrip("+-").isdigit():
        return int(text)
    if text.lower().endswith(".xml") or Path(text).is_file():
        return Path(text)
    return text.split(",") if "," in text else text


def as_measures(text: str) -> str | list[str]:
    """Turn the text of ``--measures`` into what `evaluate` takes."""
    return text if text in ("paper", "all") else text.split(",")


def as_names(text: str) -> list[str]:
    """Turn names with commas between them into a list."""
    return [name for part in text.split(",") if (name := part.strip())]


def as_parameters(texts: list[str] | None) -> dict[str, Any]:
    """Turn ``name=value`` texts into parameters; a value is read as JSON where it is JSON, and as text elsewhere."""
    parameters = {}
    for text in texts or []:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise ValueError(f"--set {text!r} does not do: write name=value, for instance n_components=8.")
        try:
            parameters[name] = json.loads(value)
        except json.JSONDecodeError:
            parameters[name] = value
    return parameters


def default_model() -> str:
    """Return the model to use where none is named."""
    from labelrace.models.registry import model_names

    return "race" if "race" in model_names() else "race-cls-adaptive"
