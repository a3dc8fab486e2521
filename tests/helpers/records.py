"""Records of runs, compared."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any


def lasting(records: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the records in order, without what differs from one time to the next."""
    kept = [{key: value for key, value in one.items() if key not in ("seconds", "memory")} for one in records]
    return sorted(kept, key=lambda one: (one["model"], one["run"], one.get("batch", math.inf), one["kind"] == "done"))
