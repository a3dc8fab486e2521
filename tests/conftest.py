"""What all tests share: the environment, hypothesis, which models and which tests are run.

``--all-models`` runs what holds for every model over all of them, otherwise over one of each family. ``-m "not slow"``
leaves out what starts processes, browsers and clusters or takes long: the inner loop (`make quick`).
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

# The workers of pytest-xdist share the processors: more BLAS threads than one make each wait for the other. NumPy reads
# this when it is first imported, and so do the commands that the tests start.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# Read by helpers/models.py, in the workers, too.
if "--all-models" in sys.argv:
    os.environ["LABELRACE_ALL_MODELS"] = "1"

# The same examples every time, so that a failure is of the change at hand; HYPOTHESIS_PROFILE=random looks for more.
settings.register_profile("same", derandomize=True, deadline=None)
settings.register_profile("quick", derandomize=True, deadline=None, max_examples=10)
settings.register_profile("random", deadline=None, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))

# A shell that starts a command in the background has it ignore Ctrl-C, and so would every command that the tests start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Below what NumPy and the helpers read from the environment.
from helpers.banks import *  # noqa: E402, F403
from helpers.browser import *  # noqa: E402, F403
from helpers.data import *  # noqa: E402, F403
from helpers.models import *  # noqa: E402, F403
from helpers.postgresql import *  # noqa: E402, F403

# Folders and files whose tests start processes, browsers and clusters, or go through many cases.
SLOW = (
    "base/test_interrupts.py",
    "base/test_state_file.py",
    "base/test_threads.py",
    "benchmarks",
    "checks",
    "cli",
    "decisions/test_drift.py",
    "distributed",
    "documents",
    "evaluation/test_experiment.py",
    "evaluation/test_records.py",
    "evaluation/test_workers.py",
    "examples",
    "extreme/test_kernels.py",
    "fuzz",
    "golden",
    "learners/test_growth.py",
    "linear/test_default.py",
    "linear/test_interrupted.py",
    "linear/test_late_and_missing.py",
    "linear/test_robust_start.py",
    "merging",
    "race/test_decoder_forgetting.py",
    "related/compression",
    "related/neighbours",
    "related/trees",
    "report/test_browser.py",
    "river",
    "serve/test_failures.py",
    "serve/test_guards.py",
    "serve/test_journal.py",
    "serve/test_kills.py",
    "serve/test_maintenance.py",
    "serve/test_openapi.py",
    "serve/test_pages.py",
    "serve/test_pages_inbox.py",
    "serve/test_pages_work.py",
    "smoke",
    "streams/test_arff_properties.py",
    "streams/test_fuzz_formats.py",
    "streams/test_hostile.py",
    "streams/test_stream_memory.py",
    "streams/test_synthetic.py",
    "streams/test_write.py",
    "tables/test_fuzz.py",
    "tables/test_interrupted.py",
    "tables/test_merge.py",
    "test_layers.py",
    "test_public.py",
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Offer ``--all-models``."""
    parser.addoption(
        "--all-models",
        action="store_true",
        help="run the tests of every model over all of them, and kill and ask services more often",
    )


def is_slow(path: Path) -> bool:
    """Return whether a folder or file is among the slow ones."""
    return any(path.is_relative_to(Path(__file__).parent / name) for name in SLOW)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out slow files before they are imported, where slow tests are not wanted."""
    return True if config.option.markexpr == "not slow" and is_slow(collection_path) else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of slow folders as slow."""
    for item in items:
        if is_slow(item.path):
            item.add_marker(pytest.mark.slow)


@pytest.fixture(autouse=True)
def settings_of_numpy() -> Iterator[None]:
    """Restore what NumPy warns of: an interrupt at the end of a block that has settings of its own leaves those."""
    # Not at the top: NumPy reads the environment, which is set above, when it is first imported.
    import numpy as np

    before = np.geterr()
    yield
    np.seterr(**before)
