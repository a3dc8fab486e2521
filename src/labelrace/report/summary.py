"""Manifest and records -> one dict of plain values that every table and chart is made from."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from labelrace.evaluation import is_loss, rank
from labelrace.evaluation.ranks import TIE_DIGITS
from labelrace.report.runs import PHASES, Run, Runs, curves, group_records, labels, mean, plain, value_of
from labelrace.report.text import as_significant, as_value, decimals_for, listing, measure_label, plural

# Values that JSON can hold. The keys are listed in `summarize`.
Summary: TypeAlias = dict[str, Any]


class _Shown(dict[str, Any]):
    """A summary that notebooks show as tables and charts."""

    def _repr_html_(self) -> str:
        from labelrace.report.run_report import report_document  # here, as it is made from summaries

        return report_document(self)._repr_html_()


# Running time is the model's: measuring is not part of it.
_TIMED = ("features", "predict", "learn")
# The measure by which a sentence says how much better one model is, if it was measured.
MAIN_MEASURE = "micro_f1"
# The most names that are listed of labels that appeared together; the others are counted.
_MOST_NAMES = 8
# Labels that are listed as the best, and as the worst.
_LISTED = 8
# Tested rows that must have a label for its F1 to mean anything.
_LEAST_ROWS = 5


def summarize(manifest: Mapping[str, Any], records: Iterable[Mapping[str, Any]]) -> Summary:
    """Return everything a report says, as values that JSON can hold; notebooks show it as tables and charts.

    A model's values are means over its finished runs; of each run, over its whole test batches. A model without a
    finished run is shown by what it has, but not ranked.

    Parameters
    ----------
    manifest : mapping
        What was run, as in a run folder's ``manifest.json``.
    records : iterable of mappings
        What came out, as in ``records.jsonl``. They may be incomplete.

    Returns
    -------
    dict
        ``title``, ``headline``: what was run. ``verdict``: who won and by how much, in a sentence.
        ``complete``, ``notes``, ``failures``: what is missing, as a flag, sentences, and errors.
        ``measures``: ``name``, ``label``, ``lower`` (is better) and ``decimals`` of each.
        ``models``: of each ``name``, ``kind`` (the registry's name), ``parameters``, ``runs`` (counts), ``ranked``,
        ``measures`` (``mean``, ``sd`` over runs, ``rank``, ``best``), ``average_rank``, ``best_rank``, ``seconds`` of
        a run and ``ms_per_row`` (by phase, and ``total`` without measuring), ``log10_time_ratio`` to the reference,
        ``fastest``, ``memory`` (peak, in bytes). The best average rank comes first.
        ``reference``: the model that times are compared with, the first RACE model.
        ``curves``, ``labels``: data of the charts, one line per model in the order of ``models``.
        ``events``: labels that appeared, alarms and confirmed drifts. ``extremes``: the labels with the
        highest and the lowest F1.
        ``manifest``: as given.

    Examples
    --------
    >>> import tempfile
    >>> from labelrace.evaluation import run
    >>> from labelrace.streams.synthetic import SyntheticStream
    >>> stream = SyntheticStream(n_rows=300, n_features=20, n_labels=12, seed=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     summary = summarize(*run(stream, ["majority", "negative"], out=folder, batch_size=100, jobs=1))
    >>> [model["name"] for model in summary["models"]]
    ['majority', 'negative']
    """
    runs = group_records(manifest, records)
    measures = list(manifest["measures"])
    described = {model["name"]: model for model in manifest["models"]}
    # The finished runs, or if there is none all that left anything.
    chosen = {
        name: [run for run in of_model.values() if run.done] or [run for run in of_model.values() if run.batches]
        for name, of_model in runs.items()
    }
    once = _run_once(runs, manifest["runs"])
    models = [
        {
            "name": name,
            "kind": described.get(name, {}).get("model", name),
            "parameters": described.get(name, {}).get("parameters") or {},
            "runs": _counts(of_model, 1 if name in once else manifest["runs"]),
            "ranked": any(run.done for run in of_model.values()),
            "measures": {measure: _over_runs(chosen[name], measure) for measure in measures},
            **_costs(chosen[name], manifest["source"].get("feature_seconds") or 0.0),
        }
        for name, of_model in runs.items()
    ]
    _rank(models, measures)
    reference = _compare_times(models)
    models.sort(key=lambda model: (model["average_rank"] is None, model["average_rank"] or 0.0))
    runs = {model["name"]: runs[model["name"]] for model in models}
    chosen = {name: chosen[name] for name in runs}
    lines, names = curves(runs, measures), manifest["source"].get("label_names") or ()
    of_labels = labels(runs, chosen, names)
    tested = [run.labels.get("rows", 0) for of_model in runs.values() for run in of_model.values() if run.labels]
    return _Shown(
        {
            "title": manifest["source"]["name"],
            "headline": _headline(manifest),
            "verdict": verdict(manifest["source"]["name"], models, measures),
            "complete": all(model["runs"]["finished"] == model["runs"]["expected"] for model in models),
            "notes": _notes(manifest, runs, models, once),
            "failures": _failures(runs),
            "measures": [
                {
                    "name": name,
                    "label": measure_label(name),
                    "lower": is_loss(name),
                    "decimals": decimals_for(model["measures"][name]["mean"] for model in models),
                }
                for name in measures
            ],
            "models": models,
            "reference": reference,
            "curves": lines,
            "labels": of_labels,
            "events": events(runs, lines["rows"], names),
            "extremes": extremes(of_labels, max(tested, default=0)),
            "manifest": dict(manifest),
        }
    )


def _run_once(runs: Runs, n_runs: int) -> set[str]:
    """Return the models whose repeats were left out, as those of a model without randomness may be.

    Runs are done one after the other for all models: where one model finished all of them, another that has run 0 and
    nothing else was not meant to have more.
    """
    if not any(sum(run.done is not None for run in of_model.values()) >= n_runs for of_model in runs.values()):
        return set()
    return {name for name, of_model in runs.items() if list(of_model) == [0] and of_model[0].done and n_runs > 1}


def _counts(of_model: Mapping[int, Run], expected: int) -> dict[str, int]:
    finished = sum(run.done is not None for run in of_model.values())
    failed = sum(run.failed is not None for run in of_model.values())
    return {"expected": max(expected, len(of_model)), "finished": finished, "failed": failed, "started": len(of_model)}


def _failures(runs: Runs) -> list[dict[str, Any]]:
    return [
        {"model": name, "run": number, "batches": len(run.batches), "error": str(run.failed["error"])}
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


def _costs(chosen: Sequence[Run], feature_seconds: float) -> dict[str, Any]:
    """Return seconds of a run, milliseconds per row and peak memory, as means over runs.

    Every model needs the features: what it took to make them, once, counts for each.
    """
    if not chosen:
        nothing = dict.fromkeys([*PHASES, "total"])
        return {"seconds": nothing, "ms_per_row": dict(nothing), "fastest": False, "memory": None}
    rows = sum(run.rows() for run in chosen)
    spent = {phase: sum(run.seconds()[phase] for run in chosen) for phase in PHASES}
    spent["features"] = feature_seconds * len(chosen)
    spent["total"] = sum(spent[phase] for phase in _TIMED)
    return {
        "seconds": {phase: seconds / len(chosen) for phase, seconds in spent.items()},
        "ms_per_row": {phase: 1000 * seconds / rows if rows else None for phase, seconds in spent.items()},
        "fastest": False,
        "memory": plain(mean(np.array([run.memory() for run in chosen]))),
    }


def _rank(models: list[dict[str, Any]], measures: Sequence[str]) -> None:
    """Fill in ranks and mark the best. A single model is not ranked."""
    ranked = [model for model in models if model["ranked"]]
    if len(ranked) < 2:
        for model in models:
            model |= {"average_rank": None, "best_rank": False}
        return
    for measure in measures:
        cells = [model["measures"][measure] for model in ranked]
        for cell, position in zip(cells, _ranks([c["mean"] for c in cells], is_loss(measure)), strict=True):
            cell["rank"], cell["best"] = position, position == 1
    for model in models:
        ranks = [cell["rank"] for cell in model["measures"].values() if cell["rank"] is not None]
        model["average_rank"] = sum(ranks) / len(ranks) if ranks else None
    averages, times = ([model["average_rank"] for model in models], [m["ms_per_row"]["total"] for m in ranked])
    for key, of, values in (("best_rank", models, averages), ("fastest", ranked, times)):
        for model, position in zip(of, _ranks(values, lower=True), strict=True):
            model[key] = position == 1


def _ranks(values: Sequence[float | None], lower: bool) -> list[int | None]:
    """Return each value's rank, None for None; ties share the better one."""
    numbers = [np.nan if value is None else value for value in values]
    ranks = rank(numbers, lower_is_better=lower, digits=TIE_DIGITS)
    return [None if value is None else int(position) for value, position in zip(values, ranks, strict=True)]


def _compare_times(models: list[dict[str, Any]]) -> str | None:
    """Fill in log10 time ratios to the first RACE model, or else to the first model; return its name.

    Times are per row of data, so that a run that broke off compares with one that did not.
    """
    timed = [model for model in models if model["ms_per_row"]["total"]]
    first = next((model for model in timed if model["kind"].startswith("race")), timed[0] if timed else None)
    for model in models:
        time = model["ms_per_row"]["total"]
        model["log10_time_ratio"] = math.log10(time / first["ms_per_row"]["total"]) if time and first else None
    return None if first is None else first["name"]


def _headline(manifest: Mapping[str, Any]) -> str:
    """Return what was run, in two sentences."""
    source, runs = manifest["source"], manifest["runs"]
    how = {"holdout": "tested on rows held out", "prequential": "each batch tested first, then learned"}
    counts = ((source[key], key) for key in ("rows", "features", "labels"))
    size = ", ".join(f"an unknown number of {noun}" if count is None else f"{count:,} {noun}" for count, noun in counts)
    if source.get("cardinality") is not None:
        size += f" ({as_significant(source['cardinality'])} per row)"
    over = f"means over {plural(runs, 'run')}" if runs > 1 else "those of a single run"
    return (
        f"{plural(len(manifest['models']), 'model')} on {source['name']}, in batches of "
        f"{plural(manifest['batch_size'], 'row')}, {how[manifest['protocol']]}: {size}. Values are {over}."
    )


def _notes(
    manifest: Mapping[str, Any], runs: Runs, models: Sequence[Mapping[str, Any]], once: Collection[str]
) -> list[str]:
    """Return what is missing or unusual about these runs, in sentences; empty when all is well."""
    notes = []
    if absent := [model["name"] for model in models if not model["runs"]["started"]]:
        notes.append(f"Not started: {listing(absent)}.")
    for model in models:
        counts = model["runs"]
        # A failed run is reported below, with its error.
        broken_off = counts["started"] - counts["finished"] - counts["failed"]
        if counts["started"] and (broken_off or counts["started"] < counts["expected"]):
            finished = f"{counts['finished']} of {plural(counts['expected'], 'run')}"
            notes.append(f"Interrupted: {model['name']} finished {finished}.")
    if unranked := [model["name"] for model in models if model["runs"]["started"] and not model["ranked"]]:
        notes.append(f"No finished run of {listing(unranked)}: shown by what there is (†), not ranked.")
    for failure in _failures(runs):
        batches = plural(failure["batches"], "batch", "batches")
        notes.append(f"Failed: {failure['model']}, run {failure['run']}, after {batches}: {failure['error']}")
    done = [run for of_model in runs.values() for run in of_model.values() if run.done]
    if done and not any(run.tested for run in done):
        batch = f"the first batch, of up to {plural(manifest['batch_size'], 'row')}, is only learned"
        notes.append(f"Nothing was tested: {batch}, and there is no other. Use a smaller batch size.")
    averaged = [run.averaged.values() for of_model in runs.values() for run in of_model.values()]
    if any(not batch["whole"] for batches in averaged for batch in batches):
        notes.append("There are runs without a whole test batch; their values are those of the partial one.")
    if repeated := [name for name in runs if name in once]:
        notes.append(f"Run once, without repeats: {listing(repeated)}.")
    if unknown := runs.keys() - {model["name"] for model in manifest["models"]}:
        notes.append(f"Not in the manifest, but in the records: {listing(sorted(unknown))}.")
    return notes


def verdict(source: str, models: Sequence[Mapping[str, Any]], measures: Sequence[str]) -> str:
    """Say in one sentence which model won and by how much; models come best first. Empty if nothing was tested.

    Examples
    --------
    >>> models = [
    ...     {"name": name, "ranked": True, "average_rank": rank, "measures": {"micro_f1": {"mean": value}}}
    ...     for name, rank, value in (("race", 1.0, 0.5), ("obr", 2.0, 0.4))
    ... ]
    >>> verdict("enron", models, ["micro_f1"])
    'race won on enron: micro F1 0.500, 0.100 above obr, the second.'
    """
    ranked = [model for model in models if model["ranked"]]
    main = MAIN_MEASURE if MAIN_MEASURE in measures else next(iter(measures), None)
    if not ranked or main is None or all(model["measures"][main]["mean"] is None for model in ranked):
        return ""
    first, label = ranked[0], measure_label(main)
    label = label if label.split()[0].isupper() else label[0].lower() + label[1:]
    decimals = decimals_for(model["measures"][main]["mean"] for model in ranked)
    best = first["measures"][main]["mean"]
    if len(ranked) == 1:
        return f"{first['name']} reached a {label} of {as_value(best, decimals)} on {source}."
    winners = [model["name"] for model in ranked if model["average_rank"] == first["average_rank"]]
    if len(winners) > 1:
        values = listing(as_value(model["measures"][main]["mean"], decimals) for model in ranked[: len(winners)])
        return f"{listing(winners)} share the best average rank on {source}: their {label} is {values}."
    second = ranked[1]
    other = second["measures"][main]["mean"]
    ranks = (
        f"average rank {first['average_rank']:.2f} against {second['average_rank']:.2f} over {len(measures)} measures"
    )
    over = f" ({ranks})" if len(measures) > 1 else ""
    if best is None or other is None:
        return f"{first['name']} won on {source}, before {second['name']}{over}."
    # The difference of the rounded numbers, which the reader sees.
    ahead = round(best, decimals) - round(other, decimals)
    margin = f"{as_value(abs(ahead), decimals)} {'above' if ahead > 0 else 'below'}" if ahead else "the same as"
    value = as_value(best, decimals)
    return f"{first['name']} won on {source}: {label} {value}, {margin} {second['name']}, the second{over}."


def events(runs: Runs, rows: Sequence[int], names: Sequence[str]) -> dict[str, Any]:
    """Return where labels appeared and which models found drifts, by the points of the curves, which end at ``rows``.

    ``labels`` has for each point ``row``, the first one, ``count`` and some of the ``names``; ``alarms``, and
    ``drifts``, which are confirmed alarms, have for each ``model`` its ``rows``. What was there in the first batch has
    not appeared. All are those of the first runs.
    """
    first_runs = {name: next(iter(of_model.values())) for name, of_model in runs.items() if of_model}
    first_rows = [run.labels["first"] for run in first_runs.values() if run.labels and "first" in run.labels]
    start = min((batch["start"] for run in first_runs.values() for batch in run.tested.values()), default=0)
    by_point: dict[int, list[tuple[int, int]]] = {}
    for label, row in enumerate(first_rows[0] if first_rows else ()):
        if row is not None and row >= start:
            by_point.setdefault(int(np.searchsorted(rows, row, side="right")), []).append((row, label))
    appeared = []
    for _, new in sorted(by_point.items()):
        listed = [names[label] if label < len(names) else str(label) for _, label in sorted(new)[:_MOST_NAMES]]
        appeared.append({"row": min(new)[0], "count": len(new), "names": listed})
    return {"labels": appeared, **{what: _when_counted(first_runs, what) for what in ("alarms", "drifts")}}


def _when_counted(first_runs: Mapping[str, Any], what: str) -> list[dict[str, Any]]:
    """Return for each model the rows at which it counted one more of something."""
    found = []
    for name, run in first_runs.items():
        counts = [(batch["start"], batch[what]) for batch in run.tested.values() if what in batch]
        later = zip([(0, 0), *counts], counts, strict=False)
        if when := [row for (_, before), (row, now) in later if now > before]:
            found.append({"model": name, "rows": when})
    return found


def extremes(labels: Mapping[str, Any] | None, n_rows: int) -> dict[str, list[int]] | None:
    """Return the columns of the labels with the highest and with the lowest F1 of the first model.

    Labels in fewer than five of the ``n_rows`` tested rows are left out, if that number is known. Of labels with the
    same F1 the more frequent ones come first.
    """
    if labels is None or not labels["f1"]:
        return None
    share, f1 = labels["frequency"], labels["f1"][0]
    judged = [
        label
        for label, value in enumerate(f1)
        if value is not None and share[label] and (not n_rows or share[label] * n_rows >= _LEAST_ROWS - 0.5)
    ]
    best = sorted(judged, key=lambda label: (-f1[label], -share[label]))[: min(_LISTED, (len(judged) + 1) // 2)]
    worst = sorted(set(judged) - set(best), key=lambda label: (f1[label], -share[label]))[:_LISTED]
    return {"best": best, "worst": worst} if judged else None
