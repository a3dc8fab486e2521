"""The paper's experiments: what is run for which of its tables, and the results beside the paper's."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Annotated, Any, NamedTuple

import typer

from benchmarks.datasets import Source, counted, find_paper_datasets
from benchmarks.plan import RUNS, Data, Datasets, Everything, Out, Part, Record, Resume, publish, run_plan, within
from benchmarks.published import Facts, Reference, judge, paper_datasets, printed_ranks, published, rerun
from benchmarks.ranking import OVERALL, RankTable, average_ranks, rank_records
from labelrace.base.registry import model_group, model_names
from labelrace.cli.options import Models, Runs, Seed, Workers, as_names, as_specs
from labelrace.evaluation import ModelSpec
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


# Parts of the kind "own" are the user's models.
TABLES = {
    "2": _Layout(("variants",), "The four variants of RACE", VARIANTS),
    "3": _Layout(
        ("variants", "baselines", "own"),
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
        ("variants", "baselines", "related", "own"),
        "The related work on the paper's data",
        ("race", "race-cls-adaptive", "race-reg-fixed", "obr", *RELATED, "majority"),
    ),
    "sweep": _Layout(("sweep",), "The number of pseudo labels", SWEPT),
}
_SWEEP_DATASETS = ("CAL500", "enron")
# In Table 4 rows are held out; everywhere else each batch is tested, then learned. All measures are taken where the
# paper's source has all, else those that it prints.
_KINDS: dict[str, tuple[tuple[str, ...], dict[str, str]]] = {
    "variants": (VARIANTS, {"measures": "all"}),
    "baselines": (BASELINES, {"measures": "all"}),
    "holdout": (HOLDOUT, {"measures": "paper", "protocol": "holdout"}),
    "related": (("race", *RELATED), {"measures": "paper"}),
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

    manifest: Record  # of the first part: runs, seed, version, time and machine are those of all
    datasets: tuple[str, ...]
    records: dict[str, list[Record]]
    ranks: dict[str, list[RankTable]]  # of each table
    notes: list[str]  # what a reader must know before relying on the comparison


def compare(
    outcomes: Sequence[tuple[Part, Summary]], sources: Sequence[Source], missing: Sequence[str], tables: Sequence[str]
) -> PaperSummary:
    """Compare the results of the parts of a plan with what the paper printed, in the tables named.

    `sources` are in the order to show them; `missing` are the datasets that are not available.
    """
    models = {
        (part.source.name, part.kind): {model["name"]: model for model in summary["models"]}
        for part, summary in outcomes
    }
    own = tuple(dict.fromkeys(spec.label for part, _ in outcomes if part.kind == "own" for spec in part.models))
    records: dict[str, list[Record]] = {"cells": [], "datasets": _datasets(sources, missing), "ranks": [], "times": []}
    ranks = {}
    for number in (number for number in TABLES if number in tables and number != "sweep"):
        layout = TABLES[number]
        methods = (*layout.methods, *(own if "own" in layout.kinds else ()))
        cells: list[Record] = []
        for source in sources:
            ran = {name: m for kind in layout.kinds for name, m in models.get((source.name, kind), {}).items()}
            cells += _cells(number, source, {method: ran.get(method) for method in methods})
            records["times"] += _times(number, source, {method: ran.get(method) for method in methods})
        records["cells"] += cells
        ranks[number] = _ranks(number, sources, methods, cells)
        records["ranks"] += [{"table": number, **record} for record in rank_records(ranks[number])]
    records["sweep"] = [record for s in sources for record in _sweeps(s, models.get((s.name, "sweep"), {}))]
    names = tuple(source.name for source in sources)
    return PaperSummary(outcomes[0][1]["manifest"], names, records, ranks, _notes(sources, missing, outcomes))


def over_runs(model: Mapping[str, Any] | None, measure: str) -> Record:
    """Return mean, deviation and number of a model's finished runs, None if there are none.

    Runs that broke off are no means of the whole stream.
    """
    cell = model["measures"].get(measure, {"mean": None}) if model and model["ranked"] else {"mean": None}
    return {key: None if cell["mean"] is None else cell[key] for key in ("mean", "sd", "runs")}


def _is_papers(source: Source) -> bool:
    """Return whether a source can be the paper's dataset: it has as many rows, features and labels."""
    return source.facts[:3] == paper_datasets()[source.name][0][:3]


def _datasets(sources: Sequence[Source], missing: Iterable[str]) -> list[Record]:
    sizes = {source.name: source.facts._asdict() for source in sources}
    found = {source.name: "yes" if _is_papers(source) else "another" for source in sources}
    return [
        {"dataset": name, "found": found.get(name, "no"), **sizes.get(name, dict.fromkeys(Facts._fields))}
        | {f"paper_{key}": value for key, value in paper_datasets()[name][0]._asdict().items()}
        for name in dict.fromkeys([*found, *missing])
    ]


def _cells(number: str, source: Source, models: Mapping[str, Any]) -> Iterator[Record]:
    """Put ours beside the paper's, for one dataset of one table."""
    printed = TABLES[number].measures
    # The paper's source has all measures of Tables 2 and 3.
    measures = measure_names("all") if number in "23" else printed
    ours = {(method, measure): over_runs(models[method], measure) for measure in measures for method in models}
    means = {(source.name, *key): value["mean"] for key, value in ours.items()}
    ranks = average_ranks("", [source.name], list(models), measures, means, "min", _PRINTED_DIGITS).averages
    for (method, measure), value in ours.items():
        paper = published().get((number, source.name, method, measure)) if _is_papers(source) else None
        again = rerun().get((source.name, method, measure)) if _is_papers(source) and number in "23" else None
        yield {
            "table": number,
            "dataset": source.name,
            "method": method,
            "measure": measure,
            "printed": measure in printed,  # otherwise only the paper's source has it
            "ours": value["mean"],
            "ours_sd": value["sd"],
            "runs": value["runs"],
            "rank": None if value["mean"] is None else int(ranks[method, measure]),
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
    for method, model in models.items():
        printed = published().get((number, source.name, method, "running_time")) if _is_papers(source) else None
        yield {
            "table": number,
            "dataset": source.name,
            "method": method,
            "seconds": model["seconds"]["total"] if model and model["ranked"] else None,
            "paper_seconds": printed and printed.value,
        }


def _ranks(number: str, sources: Sequence[Source], methods: Sequence[str], cells: Iterable[Record]) -> list[RankTable]:
    """Return the average ranks to show with a table.

    With Tables 2 and 3, they are ours, the paper's on the same datasets, the paper's on all of its own, and what it
    printed of these. Values are ranked as the paper does: rounded to the digits that it prints, ties share the better
    rank. Of the related work, the methods that ran on all datasets are ranked, by values that are not rounded.
    """
    papers, measures = TABLES[number].methods, TABLES[number].measures
    ours = {(cell["dataset"], cell["method"], cell["measure"]): cell["ours"] for cell in cells}
    if number == "related":
        names = [source.name for source in sources]
        ran = [m for m in methods if all(ours[name, m, measures[0]] is not None for name in names)]
        return [average_ranks("ours", names, ran, measures, ours)] if ran else []
    if number not in "23":
        return []
    theirs = {key[1:]: reference.value for key, reference in published().items() if key[0] == number}
    everything, available = tuple(paper_datasets()), {source.name for source in sources if _is_papers(source)}
    same = tuple(name for name in everything if name in available)
    wanted: list[tuple[str, Sequence[str], Sequence[str], Mapping[tuple[str, str, str], float | None]]] = []
    if same:
        wanted.append(("ours", same, methods, ours))
    if same and same != everything:
        wanted.append(("the paper's, on the same datasets", same, papers, theirs))
    wanted.append(("the paper's, recomputed from its cells", everything, papers, theirs))
    tables = [
        average_ranks(title, datasets, ranked, measures, values, "min", _PRINTED_DIGITS)
        for title, datasets, ranked, values in wanted
    ]
    printed = {(m, k): printed_ranks()[number, m, k] for m in papers for k in (*measures, OVERALL)}
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
            {"dataset": source.name, "method": method, "pseudo_labels": count}
            | {"measure": measure, "mean": cell["mean"], "sd": cell["sd"] or 0.0}
            for count, cell in sorted(done.items())
        ]
    return records


def _notes(sources: Sequence[Source], missing: Sequence[str], outcomes: Iterable[tuple[Part, Summary]]) -> list[str]:
    """Return what is missing, what is not the paper's data, and what failed, in sentences."""
    notes = []
    if missing:
        notes.append(f"Not available, and so not compared: {listing(missing)}.")
    for source in sources:
        if not _is_papers(source):
            sizes = (source.facts, paper_datasets()[source.name][0])
            here, wanted = (f"{size.rows} × {size.features}, {size.labels} labels" for size in sizes)
            notes.append(
                f"The {source.name} found here is not the paper's ({here}; the paper's is {wanted}): its results are "
                "shown, but not compared."
            )
    for part, summary in outcomes:
        errors: dict[str, list[str]] = {}
        for failure in summary["failures"]:
            errors.setdefault(failure["model"], []).append(failure["error"])
        for model, told in errors.items():
            notes.append(f"{model} failed on {part.source.name}, in {plural(len(told), 'run')}: {told[0]}")
    return notes


def check_tables(texts: Iterable[str]) -> list[str]:
    """Return the tables named, in the paper's order; raise ValueError for one that does not exist.

    Examples
    --------
    >>> check_tables(["sweep", "2"])
    ['2', 'sweep']
    """
    names = list(texts)
    for text in names:
        if text not in TABLES:
            raise ValueError(f"tables must be some of {', '.join(TABLES)}, got {text!r}")
    return [table for table in TABLES if table in names]


def make_plan(sources: Sequence[Source], tables: Iterable[str], own: Sequence[ModelSpec] = ()) -> list[Part]:
    """List what must be run for these tables on these datasets, small datasets first; `own` are the user's models."""
    kinds = {kind for table in check_tables(tables) for kind in TABLES[table].kinds}
    parts = []
    for source in sorted(sources, key=lambda source: paper_datasets()[source.name][0].rows):
        of_source = [
            Part(source, tuple(map(ModelSpec, methods)), options, kind, _RELATED_RUNS if kind == "related" else None)
            for kind, (methods, options) in _KINDS.items()
        ]
        if own:
            # Measures of label sets: a model of one's own may have no scores.
            of_source.append(Part(source, tuple(own), {"measures": "paper"}, "own"))
        if source.name in _SWEEP_DATASETS:
            specs = _sweep(paper_datasets()[source.name][0].labels)
            of_source.append(Part(source, specs, {"measures": "paper"}, "sweep"))
        parts += [part for part in of_source if part.kind in kinds]
    return parts


def _sweep(n_labels: int) -> tuple[ModelSpec, ...]:
    """List the methods of the sweep with k, 2k, … k² pseudo labels, k being the usual number of them."""
    least = math.ceil(math.log2(n_labels))
    counts = range(least, least**2 + 1, least)
    return tuple(ModelSpec(name, {"n_components": k}, f"{name} k={k}") for name in SWEPT for k in counts)


def paper(
    data: Data = None,
    datasets: Datasets = None,
    table: Annotated[str, typer.Option(help="Which tables, separated by commas.")] = ",".join(TABLES),
    models: Models = None,
    runs: Runs = 10,
    seed: Seed = 0,
    workers: Workers = None,
    out: Out = RUNS / "paper",
    resume: Resume = False,
    everything: Everything = False,
) -> None:
    """Repeat the paper's tables, ours beside them.

    Tables 2 to 4 are the paper's, "related" are the methods that it names and does not run (at most 3 runs), "sweep" is
    its figure of the number of pseudo labels. Models of your own, by --model, stand in Table 3 and in the related work;
    partial_fit and predict are enough.

    [dim]Examples:[/dim]

    python -m benchmarks paper

    python -m benchmarks paper --data ~/mulan --table 3 --runs 3 --model mymodule:MyClassifier --out quick
    """
    from benchmarks.paper_report import paper_document

    wanted, own = check_tables(as_names(table)), as_specs(models or [], None)
    found = find_paper_datasets(data or (), as_names(datasets or ""))
    if not found.sources:
        raise FileNotFoundError(
            f"none of the paper's datasets is available ({', '.join(found.missing)}): see `labelrace data list`, or "
            "give their folder by --data or LABELRACE_DATA"
        )
    if not make_plan(found.sources, wanted):
        raise FileNotFoundError(f"the sweep is on {listing(_SWEEP_DATASETS)}, and neither is available")
    sources = [counted(source) for source in found.sources]
    plan, notes = make_plan(sources, wanted, own), list[str]()
    if not everything:
        related = [part for part in plan if part.kind == "related"]
        kept, notes = within(related, min(runs, _RELATED_RUNS), _RELATED_SECONDS)
        plan = [*(part for part in plan if part.kind != "related"), *kept]
    outcomes = [
        (part, summarize(manifest, records))
        for part, manifest, records in run_plan(plan, out, runs=runs, seed=seed, jobs=workers, resume=resume)
    ]
    summary = compare(outcomes, sources, found.missing, wanted)
    publish(paper_document(replace(summary, notes=[*summary.notes, *notes])), out)
