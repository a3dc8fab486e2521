"""From the model's probabilities to suggested tags: names of tags count, and only sure tags are given.

*Names.* A tag whose name is in a row (`labelrace.tables.name_matches`) is likelier than its few rows have shown. The
model's probability ``p`` of a tag becomes ``p + (1 - p) φ·u``: the name closes a part of the gap to certainty.
``φ`` has the source of the name, and once more times the logarithm of the tag's rows, as names matter less for
frequent tags. The weights ``u`` are common to all tags, so that a tag that nobody has used yet profits. They are
those of least squares on recent rows, predicted before they are learned: the sums ``G = Σ ff'`` and ``c = Σ f (y - p)``
for ``f = (1 - p) φ``. Where names mean nothing, as with codes, ``u`` goes to 0.

*Label sets and probabilities* come from a histogram of these scores, as those of models do
(`labelrace.decisions.rules`), as long as the label sets have a better F1 on recent rows than the model's own. So names
that mislead are turned off.

*Precision.* How often a tag is right differs from tag to tag, whatever the probability. So each tag has a surplus: how
much more often it was right than its probabilities said, as far as its rows can tell. And it differs from row to row: a
tag is right less often where others are likely, too, and in long rows, where more words are there by chance. So the
*confidence* of a suggestion is a logistic regression on four numbers, with weights common to all tags and learned
online: 1, the log odds moved by the surplus, ``log(1 + m)``, where ``m`` is the sum of the probabilities of the row's
other candidates, and the logarithm of the row's number of features. The confidences of recent suggestions
are counted, and a target precision is reached by giving only those from a confidence on, so that the mean of their
confidences is that precision. (Counts of right suggestions show the same with more noise, and lag behind a tagger
that still gets better.)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, NamedTuple

import numpy as np
from scipy.special import expit, logit

from labelrace.decisions import histogram, monitoring, rules
from labelrace.decisions.histogram import ScoreHistogram
from labelrace.decisions.rules import Rule
from labelrace.tables.name_matches import N_KINDS, Matches
from labelrace.typing import BoolArray, FloatArray, IntArray

N_CANDIDATES = 24
"""The number of the most likely tags by the model that are candidates, beside those whose names are found."""

# The initial weights of names, and the number of rows with a name that they count for.
_FIRST_WEIGHTS = np.array([0.2, 0.05, 0.1, -0.04, 0.0, 0.0])
_FIRST_ROWS = 5.0
# Half-lives, in rows, of the sums of names, of F1, and of confidences.
_HALF_LIFE = 2000.0
# Rows of a batch that are monitored.
_MAX_MONITORED = 512
# Bins of confidences; fewest suggestions that show a precision, and prior suggestions of the expected precision.
_N_BINS, _FEWEST, _EXPECTED = 100, 20.0, 1000.0
# What is left at least of a suggestion that is still remembered.
_SEEN = 0.5
# Variance that a tag's surplus is shrunken by, and the most that it remembers; probabilities from which it learns.
_SHRINKAGE, _MOST_VARIANCE, _LEAST_LIKELY = 5.0, 15.0, 0.1
_SURE = 1e-4
# What the weights of confidences count for at the start, and probabilities from which they are learned.
_FIRST_INFORMATION, _LEAST_TRUSTED = 1.0, 0.3
# Features of a row of usual length.
_USUAL_LENGTH = 50.0
# Share of the F1 of the model's label sets that those with names must have: the difference is mostly chance.
_NEARLY = 0.99
# The score of a missing candidate.
_NONE = -1.0


class Suggestions(NamedTuple):
    """Sums over recent rows, predicted before they were learned."""

    gram: Annotated[FloatArray, f"{2 * N_KINDS} {2 * N_KINDS}"] = np.zeros((2 * N_KINDS, 2 * N_KINDS))
    moments: Annotated[FloatArray, str(2 * N_KINDS)] = np.zeros(2 * N_KINDS)
    scores: ScoreHistogram = histogram.init()
    n_missed: float = 0.0  # tags of these rows that were no candidates
    f1: Annotated[FloatArray, "2"] = np.zeros(2)  # sums of the rows' F1: of the model's label sets, of those by names
    # Suggestions by their confidence, those that were right, and sums of their confidence.
    confidences: Annotated[FloatArray, f"3 {_N_BINS}"] = np.zeros((3, _N_BINS))
    best: Annotated[FloatArray, str(_N_BINS)] = np.zeros(_N_BINS)  # rows by their most confident suggestion
    trust: Annotated[FloatArray, "4"] = np.array([0.0, 1.0, 0.0, 0.0])  # weights of the log odds of confidences
    information: Annotated[FloatArray, "4 4"] = _FIRST_INFORMATION * np.eye(4)  # the information of these weights
    surplus: Mapping[str, tuple[float, float]] = {}  # by tag: how much more often it was right, and the variance

    @property
    def uses_names(self) -> bool:
        """Whether label sets and probabilities use names."""
        return bool(self.f1[1] >= _NEARLY * self.f1[0])

    @property
    def weights(self) -> FloatArray:
        """The weights of names, by their source."""
        prior = _FIRST_ROWS * np.eye(len(self.gram))
        return np.asarray(np.linalg.solve(self.gram + prior, self.moments + _FIRST_ROWS * _FIRST_WEIGHTS))


class Candidates(NamedTuple):
    """Tags that may be suggested for rows, (n, c), by their numbers, -1 for none, and their scores."""

    tags: IntArray
    scores: FloatArray

    def most_likely_first(self) -> Candidates:
        """Return the candidates in the order of their scores."""
        order = np.argsort(-self.scores, axis=1, kind="stable")
        return Candidates(np.take_along_axis(self.tags, order, axis=1), np.take_along_axis(self.scores, order, axis=1))


def monitored(n_rows: int) -> IntArray:
    """Choose the rows of a batch that are monitored, evenly spread."""
    n_some = min(n_rows, _MAX_MONITORED)
    return np.arange(n_some) * n_rows // max(n_some, 1)


def with_names(state: Suggestions, likely: Candidates, matches: Matches, tag_rows: FloatArray) -> Candidates:
    """Add the evidence of names to the model's probabilities; ``tag_rows`` are the numbers of rows of the tags."""
    if not len(matches.rows):
        return likely
    base, at = _base(likely, matches)
    scores = base + (1.0 - base) * (_described(matches, tag_rows) @ state.weights)
    changed = likely.scores.copy()
    is_known = at >= 0
    changed[matches.rows[is_known], at[is_known]] = scores[is_known]
    rows, tags, others = matches.rows[~is_known], matches.tags[~is_known], scores[~is_known]
    # Further candidates of a row stand in further columns.
    column = np.arange(len(rows)) - np.searchsorted(rows, rows)
    shape = len(changed), int(column.max(initial=-1)) + 1
    more = Candidates(np.full(shape, -1), np.full(shape, _NONE))
    more.tags[rows, column], more.scores[rows, column] = tags, np.maximum(others, 0.0)
    return Candidates(np.hstack([likely.tags, more.tags]), np.hstack([changed, more.scores]))


def added_by_names(state: Suggestions, likely: Candidates, matches: Matches, tag_rows: FloatArray) -> FloatArray:
    """Compute how much is added to the score by each source of names, summed over pairs."""
    base, _ = _base(likely, matches)
    each = (1.0 - base)[:, None] * _described(matches, tag_rows) * state.weights
    return np.asarray(each.reshape(-1, 2, N_KINDS).sum(axis=(0, 1)))


def _base(likely: Candidates, matches: Matches) -> tuple[FloatArray, IntArray]:
    """Return the model's probability of each pair, 0 if it is no candidate, and its column, or -1."""
    is_same = likely.tags[matches.rows] == matches.tags[:, None]
    at = np.where(is_same.any(axis=1), is_same.argmax(axis=1), -1)
    return np.where(at >= 0, likely.scores[matches.rows, at], 0.0), at


def _described(matches: Matches, tag_rows: FloatArray) -> FloatArray:
    """Compute ``φ``: the source of a name, and the same times the logarithm of the tag's rows."""
    return np.hstack([matches.found, matches.found * np.log1p(tag_rows[matches.tags])[:, None]])


def rule(state: Suggestions, aim: str) -> Rule:
    """Compute the decision rule from the counts."""
    return rules.make_rule("micro_f1" if aim == "macro_f1" else aim, state.scores, None, state.n_missed)


def choose(chosen_by: Rule, candidates: Candidates) -> BoolArray:
    """Return which candidates are suggested."""
    return rules.choose(chosen_by, rules.adjusted(candidates.scores)) & (candidates.tags >= 0)


def probabilities(state: Suggestions, chosen_by: Rule, candidates: Candidates) -> FloatArray:
    """Compute the probabilities of candidates: the share of recent tags with such scores that were right."""
    if not state.scores.rows:
        return np.clip(candidates.scores, 0.0, 1.0)
    return rules.probabilities(chosen_by, rules.adjusted(candidates.scores))


def observe(
    state: Suggestions,
    likely: Candidates,
    own_f1: FloatArray,
    matches: Matches,
    true: Sequence[set[int]],
    tag_rows: FloatArray,
    names: Sequence[str],
    chosen_by: Rule,
    n_features: IntArray,
) -> Suggestions:
    """Record the predictions of rows before they are learned.

    Parameters
    ----------
    state : Suggestions
    likely : Candidates
        The most likely tags of the rows by the model, with their probabilities.
    own_f1 : (n,) array
        The F1 of the model's label sets.
    matches : Matches
        Of the same rows.
    true : sequence of sets of the numbers of tags
    tag_rows : (tags,) array
        The number of rows of each tag.
    names : sequence of str
        The tags.
    chosen_by : Rule
        That of the state.
    n_features : (n,) array
        The numbers of features of the rows.
    """
    n, n_present = len(true), np.array([len(tags) for tags in true], dtype=float)
    state = _learn_names(state, likely, matches, true, tag_rows)
    found = with_names(state, likely, matches, tag_rows)
    labels = _labels(found, true)
    n_missed = float(n_present.sum() - (labels == 1).sum())
    scores = histogram.update(state.scores, rules.adjusted(found.scores), labels)
    keep = 0.5 ** (n / histogram.HALF_LIFE)
    counted = state._replace(scores=scores, n_missed=keep * state.n_missed + n_missed)
    # Rows are tested with the state before them, if there is one.
    chosen_by = chosen_by if state.scores.rows else rule(counted, chosen_by.aim)
    f1 = monitoring.example_f1(choose(chosen_by, found), labels == 1, n_present.astype(np.intp))
    sums = 0.5 ** (n / _HALF_LIFE) * state.f1 + np.array([own_f1.sum(), f1.sum()])
    return _count_confidences(counted._replace(f1=sums), chosen_by, found, labels, names, n_features)


def _learn_names(
    state: Suggestions, likely: Candidates, matches: Matches, true: Sequence[set[int]], tag_rows: FloatArray
) -> Suggestions:
    """Add the rows to the sums of least squares."""
    base, _ = _base(likely, matches)
    f = (1.0 - base)[:, None] * _described(matches, tag_rows)
    is_true = np.array([tag in true[row] for row, tag in zip(matches.rows, matches.tags.tolist(), strict=True)])
    error = is_true.reshape(-1) - base
    keep = 0.5 ** (len(true) / _HALF_LIFE)
    return state._replace(gram=keep * state.gram + f.T @ f, moments=keep * state.moments + f.T @ error)


def _labels(found: Candidates, true: Sequence[set[int]]) -> FloatArray:
    """Return which candidates are right; NaN for missing ones."""
    return np.where(found.tags >= 0, is_among(found.tags, true), np.nan)


def is_among(tags: IntArray, sets: Sequence[set[int]]) -> BoolArray:
    """Return which tags, (n, c), are in the set of their row."""
    rows = [[tag in known for tag in row] for row, known in zip(tags.tolist(), sets, strict=True)]
    return np.array(rows, dtype=bool).reshape(tags.shape)


def merge(one: Suggestions, other: Suggestions) -> Suggestions:
    """Add the sums of two taggers."""
    tags = {**other.surplus, **one.surplus}
    information = one.information + other.information
    weighted = one.information @ one.trust + other.information @ other.trust
    pairs = {tag: (one.surplus.get(tag, (0.0, 0.0)), other.surplus.get(tag, (0.0, 0.0))) for tag in tags}
    return Suggestions(
        one.gram + other.gram,
        one.moments + other.moments,
        histogram.merge(one.scores, other.scores),
        one.n_missed + other.n_missed,
        one.f1 + other.f1,
        one.confidences + other.confidences,
        one.best + other.best,
        np.asarray(np.linalg.solve(information, weighted)),
        information,
        {tag: (a[0] + b[0], a[1] + b[1]) for tag, (a, b) in pairs.items()},
    )


# --- Precision --------------------------------------------------------------------------------------------------------


def surplus_of(state: Suggestions, names: Sequence[str]) -> FloatArray:
    """Return the shift of the log odds of each tag."""
    pairs = (state.surplus.get(name, (0.0, 0.0)) for name in names)
    return np.array([more / (variance + _SHRINKAGE) for more, variance in pairs], dtype=float)


def confidence(
    state: Suggestions, likely: FloatArray, tags: IntArray, surplus: FloatArray, n_features: IntArray
) -> FloatArray:
    """Compute the confidence of suggestions; ``surplus`` is that of all tags, ``n_features`` those of the rows."""
    return _sure(state, _grounds(likely, tags, surplus, n_features), tags)


def _sure(state: Suggestions, grounds: FloatArray, tags: IntArray) -> FloatArray:
    return np.where(tags >= 0, expit(grounds @ state.trust), 0.0)


def _grounds(likely: FloatArray, tags: IntArray, surplus: FloatArray, n_features: IntArray) -> FloatArray:
    """Compute the inputs of the confidence, (n, c, 4): 1, the moved log odds, the row's other tags, and its length."""
    odds = logit(np.clip(likely, _SURE, 1.0 - _SURE)) + np.append(surplus, 0.0)[tags]
    given = np.where(tags >= 0, np.clip(likely, 0.0, 1.0), 0.0)
    others = np.log1p(np.maximum(given.sum(axis=1, keepdims=True) - given, 0.0))
    length = np.broadcast_to(np.log((1.0 + n_features) / _USUAL_LENGTH)[:, None], odds.shape)
    return np.stack([np.ones_like(odds), odds, others, length], axis=2)


def _learn_trust(state: Suggestions, grounds: FloatArray, is_right: BoolArray, n_rows: int) -> Suggestions:
    """Take one step of Newton's method on a batch, with the information of the batches before, which fades."""
    expected = expit(grounds @ state.trust)
    keep = 0.5 ** (n_rows / _HALF_LIFE)
    first = _FIRST_INFORMATION * np.eye(len(state.trust))
    before = first + keep * (state.information - first)
    information = before + (grounds * (expected * (1.0 - expected))[:, None]).T @ grounds
    step = np.linalg.solve(information, grounds.T @ (is_right - expected))
    return state._replace(trust=state.trust + step, information=information)


def _count_confidences(
    state: Suggestions,
    chosen_by: Rule,
    found: Candidates,
    labels: FloatArray,
    names: Sequence[str],
    n_features: IntArray,
) -> Suggestions:
    """Count suggestions by their confidence, and how much more often tags were right than was to be expected."""
    likely = probabilities(state, chosen_by, found)
    of_tags, is_right = surplus_of(state, names), labels == 1
    grounds = _grounds(likely, found.tags, of_tags, n_features)
    sure = _sure(state, grounds, found.tags)
    bins = np.minimum((sure * _N_BINS).astype(np.intp), _N_BINS - 1)
    # Only tags that are given without a precision are counted: sure tags must not make up for others.
    given = choose(chosen_by, found)
    columns = None, is_right[given], sure[given]
    counted = np.array([np.bincount(bins[given], one, minlength=_N_BINS) for one in columns])
    best = np.bincount(np.where(given, bins, 0).max(axis=1, initial=0), minlength=_N_BINS)
    keep = 0.5 ** (len(labels) / _HALF_LIFE)
    surplus = dict(state.surplus)
    is_likely = (found.tags >= 0) & (likely >= _LEAST_LIKELY)
    # As Python's numbers, which are quicker one by one.
    of_likely = found.tags[is_likely], likely[is_likely], is_right[is_likely]
    for tag, p, right in zip(*map(np.ndarray.tolist, of_likely), strict=True):
        more, variance = surplus.get(names[tag], (0.0, 0.0))
        fade = min(1.0, _MOST_VARIANCE / max(variance, _SURE))
        surplus[names[tag]] = fade * more + right - p, fade * variance + p * (1.0 - p)
    is_trusted = (found.tags >= 0) & (likely >= _LEAST_TRUSTED)
    state = _learn_trust(state, grounds[is_trusted], is_right[is_trusted], len(labels))
    return state._replace(
        confidences=keep * state.confidences + counted, best=keep * state.best + best, surplus=surplus
    )


class PrecisionCurve(NamedTuple):
    """Precision and share of rows by the least confidence of suggestions, on recent rows: from all of them to none."""

    confidence: FloatArray
    precision: FloatArray  # expected share of the suggestions that are right
    handled: FloatArray  # share of the rows that had one
    n_suggestions: FloatArray


def precision_curve(state: Suggestions) -> PrecisionCurve:
    """Compute precision and share of rows for each least confidence."""
    n_given, n_right, sums = np.cumsum(state.confidences[:, ::-1], axis=1)[:, ::-1]
    # Few suggestions show little: prior ones of the expected precision are added.
    precision = (n_right + _EXPECTED * sums / np.maximum(n_given, _SURE)) / (n_given + _EXPECTED)
    handled = np.cumsum(state.best[::-1])[::-1] / max(state.best.sum(), 1.0)
    return PrecisionCurve(np.arange(_N_BINS) / _N_BINS, precision, handled, n_given)


def least_confidence(state: Suggestions, precision: float) -> float:
    """Find the confidence from which on suggestions are right so often; infinite if nothing is.

    It is none below which no suggestion has been right: sure tags are not to make up for one like that.
    """
    curve = precision_curve(state)
    was_right = np.maximum.accumulate(state.confidences[1] >= _SEEN)
    enough = np.flatnonzero((curve.precision >= precision) & (curve.n_suggestions >= _FEWEST) & was_right)
    return float(curve.confidence[enough[0]]) if len(enough) else np.inf
