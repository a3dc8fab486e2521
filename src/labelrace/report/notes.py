"""What a reader must know before believing the numbers, in sentences."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from labelrace.report.collect import Run
from labelrace.report.text import listing, plural

__all__ = ["notes"]

_Runs = Mapping[str, Mapping[int, Run]]


def notes(
    manifest: Mapping[str, Any], runs: _Runs, models: Sequence[Mapping[str, Any]], once: Collection[str]
) -> list[str]:
    """Return what is missing or unusual about these runs; empty when all is well."""
    return [*_unfinished(models), *_failed(runs), *_partial(runs), *_once(runs, once), *_unknown(manifest, runs)]


def _once(runs: _Runs, once: Collection[str]) -> list[str]:
    names = [name for name in runs if name in once]
    return [f"Run once, without repeats: {listing(names)}."] if names else []


def _unfinished(models: Sequence[Mapping[str, Any]]) -> list[str]:
    found = []
    absent = [model["name"] for model in models if not model["runs"]["started"]]
    if absent:
        found.append(f"Not started: {listing(absent)}.")
    for model in models:
        counts = model["runs"]
        # A failed run is told of with its error.
        broken_off = counts["started"] - counts["finished"] - counts["failed"]
        if counts["started"] and (broken_off or counts["started"] < counts["expected"]):
            found.append(
                f"Interrupted: {model['name']} finished {counts['finished']} of {plural(counts['expected'], 'run')}."
            )
    unranked = [model["name"] for model in models if model["runs"]["started"] and not model["ranked"]]
    if unranked:
        found.append(f"No finished run of {listing(unranked)}: shown by what there is (†), not ranked.")
    return found


def _failed(runs: _Runs) -> list[str]:
    return [
        f"Failed: {name}, run {number}, after {plural(len(run.batches), 'batch', 'batches')}: {run.failed['error']}"
        for name, of_model in runs.items()
        for number, run in of_model.items()
        if run.failed
    ]


def _partial(runs: _Runs) -> list[str]:
    averaged = [run.averaged.values() for of_model in runs.values() for run in of_model.values()]
    if any(not batch["whole"] for batches in averaged for batch in batches):
        return ["There are runs without a whole test batch; their values are of the partial one."]
    return []


def _unknown(manifest: Mapping[str, Any], runs: _Runs) -> list[str]:
    known = {model["name"] for model in manifest["models"]}
    strangers = [name for name in runs if name not in known]
    return [f"Not in the manifest, but in the records: {listing(strangers)}."] if strangers else []
