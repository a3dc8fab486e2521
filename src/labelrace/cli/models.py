"""``labelrace models``: the list of models."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table


def list_models() -> None:
    """List the models by group, with a line on each.

    [dim]Example:[/dim] labelrace models
    """
    from labelrace.base.registry import describe_model, is_online, model_group, model_names
    from labelrace.base.registry_entries import GROUPS

    names, console = model_names(), Console()
    width = max(map(len, names))
    for group, title in GROUPS.items():
        members = [name for name in names if model_group(name) == group]
        if not members:
            continue
        table = Table(box=None, pad_edge=False, header_style="bold", title=title, title_justify="left")
        table.add_column("model", no_wrap=True, min_width=width)
        table.add_column("learns", no_wrap=True, min_width=len("all at once"))
        table.add_column("what it is")
        for name in members:
            table.add_row(name, "online" if is_online(name) else "all at once", describe_model(name))
        console.print(table, "")
