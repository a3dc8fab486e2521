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


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request, tmp_path_factory):
    """Return the URL of an empty database of either kind."""
    if request.param == "postgresql":
        return request.getfixturevalue("postgresql").new_database()
    return f"sqlite:///{tmp_path_factory.mktemp('journal')}/journal.sqlite"
