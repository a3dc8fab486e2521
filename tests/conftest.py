"""What all tests share."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest
from hypothesis import settings

# The workers of pytest-xdist share the processors: more BLAS threads than one make each wait for the other. NumPy reads
# this when it is first imported, and so do the commands that the tests start.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# The same examples every time, so that a failure is of the change at hand; HYPOTHESIS_PROFILE=random looks for more.
settings.register_profile("same", derandomize=True, deadline=None)
settings.register_profile("random", deadline=None, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))

# A shell that starts a command in the background has it ignore Ctrl-C, and so would every command that the tests start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


# Below what NumPy reads from the environment, as they import it.
from helpers.banks import *  # noqa: E402, F403
from helpers.models import *  # noqa: E402, F403


@pytest.fixture(autouse=True)
def settings_of_numpy() -> Iterator[None]:
    """Restore what NumPy warns of: an interrupt at the end of a block that has settings of its own leaves those."""
    # Not at the top: NumPy reads the environment, which is set above, when it is first imported.
    import numpy as np

    before = np.geterr()
    yield
    np.seterr(**before)
