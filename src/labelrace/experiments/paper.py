"""The paper's experiments: what is run for which of its tables, and the results beside the paper's."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from labelrace.base.registry import model_group, model_names
from labelrace.evaluation import ModelSpec
from labelrace.experiments.datasets import Source, counted, find_paper_datasets
from labelrace.experiments.plan import OnProgress, Part, Record, possible, run_plan, within
from labelrace.experiments.published import (
    Facts,
    Reference,
    judge,
    paper_datasets,
    printed_ranks,
    published,
    rerun,
)
from labelrace.experiments.ranking import OVERALL, RankTable, average_ranks
from labelrace.measures import PAPER_MEASURES, measure_names
from labelrace.report import Summary, summarize
from labelrace.report.text import listing, plural

VARIANTS = ("race-cls-fixed", "race-cls-adaptive", "race-reg-fixed", "race-reg-adaptive")
BASELINES = ("majority", "negative", "obr", "oecc")
# PLST as the paper had it, from MEKA.
HOLDOUT = ("race-cls-adaptive", "race-cls-adaptive-iter3", "race-offline", "plst-meka")
RELATED = tuple(name for name in model_names(online=True) if model_group(name) in ("online", "compression"))
SWEPT = ("race-cls-adaptive", "race-reg-fixed")
# The paper ranks what it prints.
_PRINTED_DIGITS = 2


class _Layout(NamedTuple):
    """What must be run for a table, its title, methods and the measures that it prints."""

    kinds: tuple[str, ...]
    title: str
    methods: tuple[str, ...]
    measures: tuple[str, ...] = PAPER_MEASURES


TABLES = {
    "2": _Layout(("variants",), "The four variants of RACE", VARIANTS),
    "3": _Layout(
        ("variants", "baselines"),
        "RACE and other online methods",
        ("race-cls-adaptive", "race-reg-fixed", *BASELINES),
    ),
    "4": _Layout(
        ("holdout",),
        "RACE and offline compression, on rows held out",
        HOLDOUT,
        ("example_accuracy", "hamming_loss"),
    ),
    "related": _Layout(
        ("variants", "baselines", "related"),
        "The related work on the paper's data",
        ("race", "race-cls-adaptive", "race-reg-fixed", "obr", *RELATED, "majority"),
    ),
    "sweep": _Layout(("sweep",), "The number of pseudo labels", SWEPT),
}
_SWEEP_DATASETS = ("CAL500", "enron")
# In Table 4 rows are held out; everywhere else each batch is tested, then learned. All measures are taken where the
# paper's source has all, else those that it prints.
_OPTIONS = {"measures": "paper"}
_KINDS: dict[str, tuple[tuple[str, ...], dict[str, str]]] = {
    "variants": (VARIANTS, {"measures": "all"}),
    "baselines": (BASELINES, {"measures": "all"}),
    "holdout": (HOLDOUT, _OPTIONS | {"protocol": "holdout"}),
    "related": (("race", *RELATED), _OPTIONS),
}
# The related work runs at most this often, and what takes it beyond this many seconds is left out.
_RELATED_RUNS, _RELATED_SECONDS = 3, 1200.0


@dataclass(frozen=True)
class PaperSummary:
    """What came out of the paper's experiments.

    ``records`` are what CSV files have and tables and charts are made of: ``cells`` by table, dataset, method and
    measure, with ours, the paper's and those of the authors' program run again; ``datasets``, ``ranks``, ``times`` and
    ``sweep``. What is not known is None; so is what must not be compared, as the data is not the paper's.
    """

    manifest: dict[str, Any]  # of the first part: runs, seed, version, time and machine are those of all
    titles: dict[str, str]  # of each dataset, what to call it
    records: dict[str, list[Record]]
    ranks: dict[str, list[RankTable]]  # of each table
    notes: list[str]  # what a reader must know before relying on the comparison


def compare(
    outcomes: Sequence[tuple[Part, Summary]], sources: Sequence[Source], missing: Sequence[str], tables: Sequence[str]
) -> PaperSummary:
    """Compare the results of the parts of a plan with what the paper printed, in the tables asked for.

    `sources` are in the order to show them; `missing` are the datasets that were not found.
    """
    models = {
        (part.source.name, part.kind): {model["name"]: model for model in summary["models"]}
        for part, summary in outcomes
    }
    records: dict[str, list[Record]] = {"cells": [], "datasets": _datasets(sources, missing), "ranks": [], "times": []}
    ranks = {}
    for number in (number for number in TABLES if number in tables and number != "sweep"):
        cells: list[Record] = []
        for source in sources:
            found = {k: v for kind in TABLES[number].kinds for k, v in models.get((source.name, kind), {}).items()}
            cells += _cells(number, source, found)
            records["times"] += _times(number, source, found)
        records["cells"] += cells
        ranks[number] = _ranks(number, sources, cells)
        records["ranks"] += [
            {"table": number, "whose": of.title, "datasets": " ".join(of.datasets)}
            | {"method": method, "measure": measure, "average_rank": value}
            for of in ranks[number]
            for (method, measure), value in of.averages.items()
        ]
    records["sweep"] = [record for s in sources for record in _sweeps(s, models.get((s.name, "sweep"), {}))]
    titles = {source.name: source.title for source in sources}
    return PaperSummary(outcomes[0][1]["manifest"], titles, records, ranks, _notes(sources, missing, outcomes))


def over_runs(model: Mapping[str, Any] | None, measure: str) -> Record:
    """Return mean, deviation and number of a model's finished runs, None if there are none.

    Runs that broke off are no means of the whole stream.
    """
    found = model["measures"][measure] if model and model["ranked"] else {"mean": None}
    return {key: None if found["mean"] is None else found[key] for key in ("mean", "sd", "runs")}


def _is_papers(source: Source) -> bool:
    """Tell whether a source can be the paper's dataset: it has as many rows, features and labels."""
    return not source.synthetic and source.facts[:3] == paper_datasets()[source.name][0][:3]


def _datasets(sources: Sequence[Source], missing: Iterable[str]) -> list[Record]:
    sizes = {source.name: source.facts._asdict() for source in sources}
    found = {source.name: "synthetic" if source.synthetic else "another" for source in sources}
    found |= {source.name: "yes" for source in sources if _is_papers(source)}
    return [
        {"dataset": name, "found": found.get(name, "no"), **sizes.get(name, dict.fromkeys(Facts._fields))}
        | {f"paper_{key}": value for key, value in paper_datasets()[name][0]._asdict().items()}
        for name in dict.fromkeys([*found, *missing])
    ]


def _cells(number: str, source: Source, models: Mapping[str, Any]) -> Iterator[Record]:
    """Put ours beside the paper's, for one dataset of one table."""
    methods, printed = TABLES[number].methods, TABLES[number].measures
    # The paper's source has all measures of Tables 2 and 3.
    measures = measure_names("all") if number in "23" else printed
    ours = {(method, measure): over_runs(models.get(method), measure) for measure in measures for method in methods}
    means = {(source.name, *key): value["mean"] for key, value in ours.items()}
    places = average_ranks("", [source.name], methods, measures, means, "min", _PRINTED_DIGITS).averages
    for (method, measure), value in ours.items():
        paper = published().get((number, source.name, method, measure)) if _is_papers(source) else None
        again = rerun().get((source.name, method, measure)) if _is_papers(source) and number in "23" else None
        yield {
            "table": number,
            "dataset": source.name,
            "synthetic": source.synthetic,
            "method": method,
            "measure": measure,
            "printed": measure in printed,  # otherwise only the paper's source has it
            "ours": value["mean"],
            "ours_sd": value["sd"],
            "runs": value["runs"],
            "rank": None if value["mean"] is None else int(places[method, measure]),
            "paper": paper and paper.text,
            "paper_sd": paper and paper.sd,
            "paper_rank": paper and paper.rank,
            **_verdict("", value, paper),
            "rerun": again and again.text,
            "rerun_sd": again and again.sd,
            **_verdict("rerun_", value, again),
        }


def _verdict(prefix: str, ours: Record, theirs: Reference | None) -> Record:
    difference, reason = (None, None) if ours["mean"] is None or theirs is None else judge(**ours, theirs=theirs)
    verdict = reason and ("differs" if reason == "differs" else "agrees")
    return {f"{prefix}difference": difference, f"{prefix}verdict": verdict, f"{prefix}reason": reason}


def _times(number: str, source: Source, models: Mapping[str, Any]) -> Iterator[Record]:
    """Return seconds of one run, ours and the paper's."""
    for method in TABLES[number].methods:
        model = models.get(method)
        printed = published().get((number, source.name, method, "running_time")) if _is_papers(source) else None
        yield {
            "table": number,
            "dataset": source.name,
            "synthetic": source.synthetic,
            "method": method,
            "seconds": model["seconds"]["total"] if model and model["ranked"] else None,
            "paper_seconds": printed and printed.value,
        }


def _ranks(number: str, sources: Sequence[Source], cells: Iterable[Record]) -> list[RankTable]:
    """Return the average ranks to show with a table.

    With Tables 2 and 3, they are ours, the paper's on the same datasets, the paper's on all of its own, and what it
    printed of these. Values are ranked as the paper does: rounded to the digits that it prints, ties share the better
    rank. Of the related work, the methods that ran on all datasets are ranked, by values that are not rounded.
    """
    methods, measures = TABLES[number].methods, TABLES[number].measures
    ours = {(cell["dataset"], cell["method"], cell["measure"]): cell["ours"] for cell in cells}
    if number == "related":
        names = [source.name for source in sources if not source.synthetic]
        ran = [m for m in methods if all(ours[name, m, measures[0]] is not None for name in names)]
        return [average_ranks("ours", names, ran, measures, ours)] if names and ran else []
    if number not in "23":
        return []
    theirs = {key[1:]: reference.value for key, reference in published().items() if key[0] == number}
    everything, found = tuple(paper_datasets()), {source.name for source in sources if _is_papers(source)}
    same = tuple(name for name in everything if name in found)
    wanted = [("ours", same, ours)] if same else []
    if same and same != everything:
        wanted.append(("the paper's, on the same datasets", same, theirs))
    wanted.append(("the paper's, recomputed from its cells", everything, theirs))
    tables = [
        average_ranks(title, datasets, methods, measures, values, "min", _PRINTED_DIGITS)
        for title, datasets, values in wanted
    ]
    printed = {(m, k): printed_ranks()[number, m, k] for m in methods for k in (*measures, OVERALL)}
    return [*tables, RankTable("the paper's, as printed", everything, printed)]


def _sweeps(source: Source, models: Mapping[str, Mapping[str, Any]]) -> list[Record]:
    """Return the measures over the number of pseudo labels: means and deviations over runs."""
    records = []
    for method, measure in product(SWEPT, PAPER_MEASURES):
        done = {
            int(model["parameters"]["n_components"]): model["measures"][measure]
            for name, model in models.items()
            if name.startswith(f"{method} k=") and model["ranked"]
        }
        # A summary has the best models first; a line goes from few pseudo labels to many.
        records += [
            {"dataset": source.name, "synthetic": source.synthetic, "method": method, "pseudo_labels": count}
            | {"measure": measure, "mean": cell["mean"], "sd": cell["sd"] or 0.0}
            for count, cell in sorted(done.items())
        ]
    return records


def _notes(sources: Sequence[Source], missing: Sequence[str], outcomes: Iterable[tuple[Part, Summary]]) -> list[str]:
    """Return what is missing, what is not the paper's data, and what failed, in sentences."""
    notes = []
    if missing:
        notes.append(f"Not available, and so not compared: {listing(missing)}.")
    if made := [source.name for source in sources if source.synthetic]:
        notes.append(
            f"Synthetic streams of the same shape are shown for {listing(made)}. They are marked, and none of their "
            "values is compared with the paper."
        )
    for source in sources:
        if not source.synthetic and not _is_papers(source):
            sizes = (source.facts, paper_datasets()[source.name][0])
            found, wanted = (f"{size.rows} × {size.features}, {size.labels} labels" for size in sizes)
            notes.append(
                f"The {source.name} found here is not the paper's ({found}; the paper's is {wanted}): its results are "
                "shown, but not compared."
            )
    for part, summary in outcomes:
        errors: dict[str, list[str]] = {}
        for failure in summary["failures"]:
            errors.setdefault(failure["model"], []).append(failure["error"])
        for model, told in errors.items():
            notes.append(f"{model} failed on {part.source.title}, in {plural(len(told), 'run')}: {told[0]}")
    return notes


def run_paper(
    out: str | os.PathLike[str],
    *,
    data: Iterable[str | os.PathLike[str]] = (),
    tables: Iterable[str] = tuple(TABLES),
    runs: int = 10,
    seed: int = 0,
    jobs: int | None = None,
    resume: bool = False,
    everything: bool = False,
    synthetic: bool = False,
    synthetic_rows: int | None = None,
    on_progress: OnProgress | None = None,
) -> PaperSummary:
    """Run the paper's experiments on those of its datasets that are available.

    Parameters
    ----------
    out : path
        The folder for the records of all runs.
    data : iterable of paths, default=()
        Folders to look for datasets in, before those of ``$LABELRACE_DATA`` and the cache.
    tables : iterable of str, default=("2", "3", "4", "related", "sweep")
        "related" are the methods that the paper names and does not run; "sweep" is its figure of the number of pseudo
        labels.
    runs, seed, jobs, resume
        As `labelrace.evaluation.run` takes them; the related work has at most 3 runs.
    everything : bool, default=False
        Whether to run also what of the related work takes long; otherwise the notes tell what it would take.
    synthetic : bool, default=False
        Whether to run on a synthetic stream of the same shape for each dataset that is not available. Its results are
        called synthetic, and are not compared with the paper's.
    synthetic_rows : int or None, default=None
        Rows of each such stream; None for as many as the dataset has.
    on_progress : callable, default=None
        Called with a `Step` whenever a run starts, has tested a batch, or ends.

    Raises
    ------
    FileNotFoundError
        If none of the datasets is available.
    FileExistsError, ValueError
        If the folder holds runs already and they are not to be resumed, or are others.
    """
    asked = check_tables(tables)
    found = find_paper_datasets(map(Path, data), synthetic=synthetic, synthetic_rows=synthetic_rows)
    if not found.sources:
        raise FileNotFoundError(
            f"none of the paper's datasets is available ({', '.join(found.missing)}): see `labelrace data list`, give "
            "their folder by --data or LABELRACE_DATA, or run on synthetic ones by --synthetic"
        )
    if not make_plan(found.sources, asked):
        raise FileNotFoundError("the sweep is on CAL500 and enron, and neither is available")
    sources = [counted(source) for source in found.sources]
    plan, notes = possible(make_plan(sources, asked))
    if not everything:
        kept, slow = within(
            [part for part in plan if part.kind == "related"], min(runs, _RELATED_RUNS), _RELATED_SECONDS
        )
        plan, notes = [*(part for part in plan if part.kind != "related"), *kept], [*notes, *slow]
    outcomes = [
        (part, summarize(manifest, records))
        for part, manifest, records in run_plan(plan, out, on_progress, runs=runs, seed=seed, jobs=jobs, resume=resume)
    ]
    summary = compare(outcomes, sources, found.missing, asked)
    return replace(summary, notes=[*summary.notes, *notes])


def check_tables(texts: Iterable[str]) -> list[str]:
    """Return the tables asked for, in the paper's order; raise ValueError for one that does not exist.

    Examples
    --------
    >>> check_tables(["sweep", "2"])
    ['2', 'sweep']
    """
    asked = list(texts)
    for text in asked:
        if text not in TABLES:
            raise ValueError(f"tables must be some of {', '.join(TABLES)}, got {text!r}")
    return [table for table in TABLES if table in asked]


def make_plan(sources: Sequence[Source], tables: Iterable[str]) -> list[Part]:
    """List what must be run for these tables on these datasets, small datasets first."""
    kinds = {kind for table in check_tables(tables) for kind in TABLES[table].kinds}
    parts = []
    for source in sorted(sources, key=lambda source: paper_datasets()[source.name][0].rows):
        found = [
            Part(source, tuple(map(ModelSpec, methods)), options, kind, _RELATED_RUNS if kind == "related" else None)
            for kind, (methods, options) in _KINDS.items()
        ]
        if source.name in _SWEEP_DATASETS:
            found.append(Part(source, _sweep(paper_datasets()[source.name][0].labels), _OPTIONS, "sweep"))
        parts += [part for part in found if part.kind in kinds]
    return parts


def _sweep(n_labels: int) -> tuple[ModelSpec, ...]:
    """List the methods of the sweep with k, 2k, … k² pseudo labels, k being the usual number of them."""
    least = math.ceil(math.log2(n_labels))
    counts = range(least, least**2 + 1, least)
    return tuple(ModelSpec(name, {"n_components": k}, f"{name} k={k}") for name in SWEPT for k in counts)
