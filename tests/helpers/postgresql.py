"""PostgreSQL for tests: a cluster of their own, see `benchmarks.postgresql`."""

from __future__ import annotations

import pytest

from benchmarks.postgresql import running_cluster, why_not

needs_postgresql = pytest.mark.skipif(why_not() is not None, reason=str(why_not()))


@pytest.fixture(scope="module")
def cluster():
    """Yield a cluster of a module's own."""
    with running_cluster() as started:
        yield started
