"""The main results: which model is best and by how much, what happened in the stream, which labels go well."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from labelrace.report.runs import Runs
from labelrace.report.text import as_value, decimals_for, listing, measure_label

# The measure by which a sentence tells how much better one model is, if it was measured.
MAIN_MEASURE = "micro_f1"
# The most names that are listed of labels that appeared together; the others are counted.
_MOST_NAMES = 8
# Labels that are listed as the best, and as the worst.
_LISTED = 8
# Tested rows that must have a label for its F1 to mean anything.
_LEAST_ROWS = 5


def verdict(source: str, models: Sequence[Mapping[str, Any]], measures: Sequence[str]) -> str:
    """Say in one sentence which model won and by how much; models come best first. Empty if no run is finished.

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
    if not ranked or main is None:
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
    told = f" ({ranks})" if len(measures) > 1 else ""
    if best is None or other is None:
        return f"{first['name']} won on {source}, before {second['name']}{told}."
    # The difference of the rounded numbers, which the reader sees.
    ahead = round(best, decimals) - round(other, decimals)
    apart = f"{as_value(abs(ahead), decimals)} {'above' if ahead > 0 else 'below'}" if ahead else "the same as"
    value = as_value(best, decimals)
    return f"{first['name']} won on {source}: {label} {value}, {apart} {second['name']}, the second{told}."


def events(runs: Runs, rows: Sequence[int], names: Sequence[str]) -> dict[str, Any]:
    """Return where labels appeared and which models found drifts, by the points of the curves, which end at ``rows``.

    ``labels`` has for each place ``row``, the first one, ``count`` and some of the ``names``; ``drifts`` has for each
    ``model`` its ``rows``. What was there in the first batch has not appeared. Both are those of the first runs.
    """
    first_runs = {name: next(iter(of_model.values())) for name, of_model in runs.items() if of_model}
    known = [run.labels["first"] for run in first_runs.values() if run.labels and "first" in run.labels]
    start = min((batch["start"] for run in first_runs.values() for batch in run.tested.values()), default=0)
    places: dict[int, list[tuple[int, int]]] = {}
    for label, row in enumerate(known[0] if known else ()):
        if row is not None and row >= start:
            places.setdefault(int(np.searchsorted(rows, row, side="right")), []).append((row, label))
    appeared = []
    for _, found in sorted(places.items()):
        listed = [names[label] if label < len(names) else str(label) for _, label in sorted(found)[:_MOST_NAMES]]
        appeared.append({"row": min(found)[0], "count": len(found), "names": listed})
    drifts = []
    for name, run in first_runs.items():
        counts = [(batch["start"], batch["drifts"]) for batch in run.tested.values() if "drifts" in batch]
        later = zip([(0, 0), *counts], counts, strict=False)
        if when := [row for (_, before), (row, now) in later if now > before]:
            drifts.append({"model": name, "rows": when})
    return {"labels": appeared, "drifts": drifts}


def extremes(labels: Mapping[str, Any] | None, n_rows: int) -> dict[str, list[int]] | None:
    """Return the columns of the labels with the highest and with the lowest F1 of the first model.

    Labels in fewer than five of the ``n_rows`` tested rows are left out, if that number is known. Of labels with the
    same F1 the more frequent ones come first.
    """
    if labels is None or not labels["f1"]:
        return None
    often, known = labels["frequency"], labels["f1"][0]
    judged = [
        place
        for place, value in enumerate(known)
        if value is not None and often[place] and (not n_rows or often[place] * n_rows >= _LEAST_ROWS - 0.5)
    ]
    best = sorted(judged, key=lambda place: (-known[place], -often[place]))[: min(_LISTED, (len(judged) + 1) // 2)]
    worst = sorted(set(judged) - set(best), key=lambda place: (known[place], -often[place]))[:_LISTED]
    return {"best": best, "worst": worst} if judged else None
