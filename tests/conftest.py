"""What all tests share."""

from __future__ import annotations

import signal

# A shell that starts a command in the background has it ignore Ctrl-C, and so would every command that the tests start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
