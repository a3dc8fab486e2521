"""PostgreSQL for tests: a cluster of their own, see `benchmarks.postgresql`."""

from __future__ import annotations

import pytest

from benchmarks.postgresql import running_cluster, why_not


@pytest.fixture(scope="module")
def postgresql():
    """Yield a cluster that the tests of a module have for themselves."""
    if why := why_not():
        pytest.skip(why)
    with running_cluster() as cluster:
        yield cluster
