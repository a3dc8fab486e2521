"""``python -m labelrace``: the command, where its script is not on the path."""

from labelrace.cli import command

command()
