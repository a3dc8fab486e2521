"""What a reader must know before believing the comparison, in sentences."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from labelrace.experiments.perform import Outcome
from labelrace.experiments.sources import SourceFacts
from labelrace.report.text import listing, plural

__all__ = ["make_notes"]


def make_notes(facts: Sequence[SourceFacts], missing: Sequence[str], outcomes: Iterable[Outcome]) -> list[str]:
    """Return what is missing, what is not the paper's data, and what failed."""
    notes = []
    if missing:
        notes.append(f"Not at hand, and so not compared: {listing(missing)}.")
    if made := [fact.source.name for fact in facts if fact.source.synthetic]:
        notes.append(
            f"Synthetic streams of their shape stand beside the real data for {listing(made)}. They are marked, and "
            "nothing of theirs is compared with the paper."
        )
    for fact in facts:
        if not fact.source.synthetic and not fact.same:
            found, wanted = ((f"{f.rows} × {f.features}, {f.labels} labels") for f in (fact.measured, fact.published))
            notes.append(
                f"The {fact.source.name} found here is not the paper's ({found}; the paper's is {wanted}): its results "
                "are shown, but not compared."
            )
    return [*notes, *_failures(outcomes)]


def _failures(outcomes: Iterable[Outcome]) -> list[str]:
    notes = []
    for outcome in outcomes:
        for model in dict.fromkeys(failure["model"] for failure in outcome.failures):
            errors = [failure["error"] for failure in outcome.failures if failure["model"] == model]
            runs = plural(len(errors), "run")
            notes.append(f"{model} failed on {outcome.part.source.title}, in {runs}: {errors[0]}")
    return notes
