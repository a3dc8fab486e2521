"""What a manifest says of a run."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

from labelrace import __version__
from labelrace.evaluation.models import ModelSpec
from labelrace.evaluation.records import FORMAT

__all__ = ["make_manifest"]


def make_manifest(
    protocol: str,
    source: Mapping[str, Any],
    models: Sequence[ModelSpec],
    *,
    runs: int,
    seed: int,
    batch_size: int,
    measures: Sequence[str],
    options: Mapping[str, Any],
) -> dict[str, Any]:
    """Describe a run: what is needed to repeat it, and the machine that its times are from.

    Parameters
    ----------
    protocol, runs, seed, batch_size
        As `labelrace.evaluation.run` has them.
    source : mapping
        The source's description.
    models : sequence of ModelSpec
    measures : sequence of str
    options : mapping
        Of the protocol, where they differ from the defaults. Without any, the manifest does not mention them.
    """
    manifest = {
        "format": FORMAT,
        "version": __version__,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "protocol": protocol,
        "source": dict(source),
        "models": [model.describe() for model in models],
        "runs": runs,
        "seed": seed,
        "batch_size": batch_size,
        "measures": list(measures),
        "machine": _machine(),
    }
    return {**manifest, "options": dict(options)} if options else manifest


def _machine() -> dict[str, Any]:
    libraries = {name: version(name) for name in ("numpy", "scipy", "scikit-learn")}
    return {"platform": platform.platform(), "python": platform.python_version(), **libraries, "cpus": os.cpu_count()}
