"""Testing a model on a batch."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from labelrace.evaluation.meters import Stopwatch
from labelrace.measures import evaluate, measure_names
from labelrace.typing import AnyMatrix

__all__ = ["Examiner", "Observer"]

Observer: TypeAlias = Callable[[AnyMatrix, AnyMatrix], object]


class Examiner:
    """Measures a model's predictions, doing only what the measures need.

    Parameters
    ----------
    measures : str or iterable of str
        As `labelrace.measures.evaluate` takes them.
    observer : callable, optional
        Called with true and predicted labels of each tested batch, for what the measures do not tell. Its time
        does not count.
    probability_observer : callable, optional
        Called with true labels and probabilities of each tested batch. The model is asked for them then, and that time
        does not count either.

    Examples
    --------
    >>> Examiner("paper").needs_scores, Examiner(["micro_f1", "coverage"]).needs_scores
    (False, True)
    """

    def __init__(
        self,
        measures: str | Iterable[str],
        observer: Observer | None = None,
        probability_observer: Observer | None = None,
    ) -> None:
        self.measures = measure_names(measures)
        self.needs_scores = _need_scores(self.measures)
        self._observer = observer
        self._probability_observer = probability_observer

    def test(self, model: Any, X: AnyMatrix, Y: AnyMatrix, watch: Stopwatch) -> dict[str, float]:
        """Predict a batch and return its measures."""
        with watch.timing("predict"):
            predicted = model.predict(X)
            scores = model.decision_function(X) if self.needs_scores else None
        with watch.timing("measure"):
            values = evaluate(Y, predicted, scores, measures=self.measures)
        if self._observer is not None:
            self._observer(Y, predicted)
        if self._probability_observer is not None:
            self._probability_observer(Y, model.predict_proba(X))
        return values


def _need_scores(names: list[str]) -> bool:
    # `evaluate` says which argument a measure lacks: asking it keeps that knowledge in one place.
    try:
        evaluate([[0]], [[0]], measures=names)
    except ValueError:
        return True
    return False
