"""The command ``labelrace``: one file a subcommand, put together in ``main``."""

from __future__ import annotations

import sys

__all__ = ["command"]


def command() -> None:
    """Run the command; Ctrl-C while it is being loaded ends it as later on."""
    try:
        from labelrace.cli.main import main
    except KeyboardInterrupt:
        sys.exit(130)
    main()
