"""Manifest and records -> one dict of plain values that every table, figure and page is made from."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from labelrace.evaluation import is_loss, rank
from labelrace.report.collect import PHASES, Run, collect, mean, plain, value_of
from labelrace.report.curves import curves, labels
from labelrace.report.notes import notes
from labelrace.report.text import decimals_for, headline, measure_label

__all__ = ["Summary", "summarize"]

# Values that JSON can hold. The keys are listed in `summarize`.
Summary: TypeAlias = dict[str, Any]

# What running time means: measuring is the experimenter's, not the model's.
_TIMED = ("predict", "learn")
_TIE_DIGITS = 12


def summarize(manifest: Mapping[str, Any], records: Iterable[Mapping[str, Any]]) -> Summary:
    """Return everything a report says, as values that JSON can hold.

    A model's values are means over its finished runs; of each run, over its whole test batches. A model without a
    finished run is shown by what it has, but not ranked.

    Parameters
    ----------
    manifest
        What was run, as in a run folder's ``manifest.json``.
    records
        What came out, as in ``records.jsonl``. They may be incomplete.

    Returns
    -------
    dict
        ``title``, ``headline``, ``protocol``, ``source``, ``created``, ``version``: what was run.
        ``complete``, ``notes``, ``failures``: what is missing, as a flag, sentences, and errors.
        ``measures``: ``name``, ``label``, ``lower`` (is better) and ``decimals`` of each.
        ``models``: of each ``name``, ``kind`` (the registry's name), ``parameters``, ``runs`` (counts), ``ranked``,
        ``measures`` (``mean``, ``sd`` over runs, ``rank``, ``best``), ``average_rank``, ``best_rank``, ``seconds`` of
        a run and ``ms_per_row`` (by phase, and ``total`` without measuring), ``fastest``, ``memory`` (peak, in bytes).
        ``reference``, ``heat``: log10 time ratios against the first RACE model.
        ``curves``, ``labels``: data of the charts, one line per model in the order of ``models``.
        ``manifest``: as given.
    """
    runs = collect(manifest, records)
    names = list(manifest["measures"])
    chosen = {name: _chosen(of_model) for name, of_model in runs.items()}
    once = _run_once(runs, manifest["runs"])
    described = {model["name"]: model for model in manifest["models"]}
    models = [
        {
            "name": name,
            # A model that was given a name of its own tells in the manifest which one it is.
            "kind": described.get(name, {}).get("model", name),
            "parameters": described.get(name, {}).get("parameters") or {},
            "runs": _counts(of_model, 1 if name in once else manifest["runs"]),
            "ranked": any(run.done for run in of_model.values()),
            "measures": {measure: _over_runs(chosen[name], measure) for measure in names},
            **_costs(chosen[name]),
        }
        for name, of_model in runs.items()
    ]
    _rank(models, names)
    reference = _reference(models)
    return {
        "title": manifest["source"]["name"],
        "headline": headline(manifest),
        "protocol": manifest["protocol"],
        "source": manifest["source"],
        "created": manifest["created"],
        "version": manifest["version"],
        "complete": all(model["runs"]["finished"] == model["runs"]["expected"] for model in models),
        "notes": notes(manifest, runs, models, once),
        "failures": _failures(runs),
        "measures": [_measure(name, models) for name in names],
        "models": models,
        "reference": reference,
        "heat": _heat(manifest["source"]["name"], models, reference),
        "curves": curves(runs, names),
        "labels": labels(runs, chosen),
        "manifest": dict(manifest),
    }


def _chosen(of_model: Mapping[int, Run]) -> list[Run]:
    """Return the finished runs, or where there is none all that left anything."""
    return [run for run in of_model.values() if run.done] or [run for run in of_model.values() if run.batches]


def _run_once(runs: Mapping[str, Mapping[int, Run]], asked: int) -> set[str]:
    """Return the models whose repeats were left out, as those of a model without randomness may be.

    Runs are done one after the other for all models: where a model got through all of them, another that has run 0
    and nothing else was not meant to have more.
    """
    if not any(sum(run.done is not None for run in of_model.values()) >= asked for of_model in runs.values()):
        return set()
    return {name for name, of_model in runs.items() if list(of_model) == [0] and of_model[0].done and asked > 1}


def _counts(of_model: Mapping[int, Run], expected: int) -> dict[str, int]:
    finished = sum(run.done is not None for run in of_model.values())
    failed = sum(run.failed is not None for run in of_model.values())
    return {"expected": max(expected, len(of_model)), "finished": finished, "failed": failed, "started": len(of_model)}


def _failures(runs: Mapping[str, Mapping[int, Run]]) -> list[dict[str, Any]]:
    return [
        {"model": name, "run": number, "error": str(run.failed["error"])}
        for name, of_model in runs.items()
        for number, run in of_model.items()
        if run.failed
    ]


def _over_runs(chosen: Sequence[Run], measure: str) -> dict[str, Any]:
    """Return mean and standard deviation over runs (divided by runs - 1; none from a single run)."""
    of_runs = np.array(
        [mean(np.array([value_of(batch, measure) for batch in run.averaged.values()])) for run in chosen]
    )
    of_runs = of_runs[~np.isnan(of_runs)]
    return {
        "mean": plain(of_runs.mean()) if of_runs.size else None,
        "sd": plain(of_runs.std(ddof=1)) if of_runs.size > 1 else None,
        "runs": int(of_runs.size),
        "rank": None,
        "best": False,
    }


def _costs(chosen: Sequence[Run]) -> dict[str, Any]:
    """Return seconds of a run, milliseconds of a row and peak memory, as means over runs."""
    if not chosen:
        nothing = dict.fromkeys([*PHASES, "total"])
        return {"seconds": nothing, "ms_per_row": dict(nothing), "fastest": False, "memory": None}
    rows = sum(run.rows() for run in chosen)
    spent = {phase: sum(run.seconds()[phase] for run in chosen) for phase in PHASES}
    spent["total"] = sum(spent[phase] for phase in _TIMED)
    return {
        "seconds": {phase: seconds / len(chosen) for phase, seconds in spent.items()},
        "ms_per_row": {phase: 1000 * seconds / rows if rows else None for phase, seconds in spent.items()},
        "fastest": False,
        "memory": plain(mean(np.array([run.memory() for run in chosen]))),
    }


def _rank(models: list[dict[str, Any]], measures: Sequence[str]) -> None:
    """Fill in ranks and marks of the best. One model alone has nothing to be better than."""
    ranked = [model for model in models if model["ranked"]]
    if len(ranked) < 2:
        for model in models:
            model |= {"average_rank": None, "best_rank": False}
        return
    for measure in measures:
        cells = [model["measures"][measure] for model in ranked]
        for cell, place in zip(cells, _ranks([c["mean"] for c in cells], is_loss(measure)), strict=True):
            cell["rank"], cell["best"] = place, place == 1
    for model in models:
        ranks = [cell["rank"] for cell in model["measures"].values() if cell["rank"] is not None]
        model["average_rank"] = sum(ranks) / len(ranks) if ranks else None
    for model, place in zip(models, _ranks([model["average_rank"] for model in models], lower=True), strict=True):
        model["best_rank"] = place == 1
    times = [model["ms_per_row"]["total"] for model in ranked]
    for model, place in zip(ranked, _ranks(times, lower=True), strict=True):
        model["fastest"] = place == 1


def _ranks(values: Sequence[float | None], lower: bool) -> list[int | None]:
    """Return each value's rank, None for None; ties share the better one.

    Values that differ only by the order in which they were summed are ties.
    """
    numbers = [np.nan if value is None else value for value in values]
    places = rank(numbers, lower_is_better=lower, digits=_TIE_DIGITS)
    return [None if value is None else int(place) for value, place in zip(values, places, strict=True)]


def _measure(name: str, models: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {
        "name": name,
        "label": measure_label(name),
        "lower": is_loss(name),
        "decimals": decimals_for(model["measures"][name]["mean"] for model in models),
    }


def _reference(models: Sequence[Mapping[str, Any]]) -> str | None:
    """Return the model that times are compared with: the first RACE model, else the first, that took any time."""
    timed = [model for model in models if model["ms_per_row"]["total"]]
    first = next((model for model in timed if model["kind"].startswith("race")), timed[0] if timed else None)
    return None if first is None else first["name"]


def _heat(source: str, models: Sequence[Mapping[str, Any]], reference: str | None) -> dict[str, Any]:
    """Return log10 time ratios, one row per source and phase, one column per model.

    Times are per row of data, so that a run that broke off compares with one that did not.
    """
    base: Mapping[str, float | None] = next((model["ms_per_row"] for model in models if model["name"] == reference), {})
    rows = [
        {
            "source": source,
            "phase": phase,
            "values": [_log_ratio(model["ms_per_row"][phase], base.get(phase)) for model in models],
        }
        for phase in ("total", *_TIMED)
    ]
    return {"columns": [model["name"] for model in models], "rows": rows}


def _log_ratio(time: float | None, base: float | None) -> float | None:
    return math.log10(time / base) if time and base else None
