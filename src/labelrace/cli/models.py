"""``labelrace models``: which models there are."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

__all__ = ["models"]


def models() -> None:
    """List the models.

    [dim]Example:[/dim] labelrace models
    """
    from labelrace.models.registry import describe_model, is_online, model_names

    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("model", no_wrap=True)
    table.add_column("learns", no_wrap=True)
    table.add_column("what it is")
    for name in model_names():
        table.add_row(name, "online" if is_online(name) else "all at once", describe_model(name))
    Console().print(table)
