"""The command ``labelrace``: one file a subcommand, put together in ``main``."""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

__all__ = ["command"]

_INTERRUPTED = 130


def command() -> None:
    """Run the command; Ctrl-C ends it with status 130 at any time, also while it is loaded or as it ends."""
    _fill_standard_streams()
    ends = False

    def interrupt(*_: Any) -> None:
        if not ends:
            raise KeyboardInterrupt

    # Where Ctrl-C is ignored, as by nohup, it stays so.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, interrupt)
    status: Any = _INTERRUPTED
    try:
        from labelrace.cli.main import main

        main()
    except KeyboardInterrupt:
        # Signals are dealt with between calls, so that none comes between these lines.
        ends = True
    except SystemExit as error:
        ends = True
        status = error.code
    # Python gives up handlers of its own while it ends; a signal would end the process then.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.exit(status)


def _fill_standard_streams() -> None:
    """Open the null device as each standard stream that is closed: the next file would get its number, and its output.

    `sys.stdin`, `sys.stdout` and `sys.stderr` stay None.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
