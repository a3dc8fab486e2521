"""A real cluster on this machine: two processes, on loopback."""

from __future__ import annotations

import pytest

pytest.importorskip("distributed", reason="the extra dask is not installed")

from labelrace.distributed.cluster import connect


# Not for longer: a cluster's threads and processes would be counted by tests of others.
@pytest.fixture(scope="module")
def client():
    with connect(workers=2) as started:
        yield started
