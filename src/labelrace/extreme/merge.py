"""Merging models of compressed labels (`labelrace.extreme.classifier`) that learned different rows.

*The decoder's sums add*: exactly those of the codes that each model predicted for its rows.

*The learners of codes* are joined half-way between mean and sum (`labelrace.linear.merge`), which is not exact.

*The tables* are joined slot by slot: the mean where both have a weight of the same pair of a feature and a label
(`labelrace.extreme.residual_table`). A table hashes pairs of indices. Where features or labels of the other model get
other indices, because each model has seen new ones, its table is left out, and such labels are scored by the decoder
alone until the table has learned them.

*Postings*: those of both models alternate, up to the same length.

*Thresholds*: the counts are added. The drift detector continues with the errors of the first model.

Labels that both know must have the same indices, which their codes are hashes of, and the models the same numbers of
pseudo labels and slots.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from labelrace.base import alignment
from labelrace.base.fitted import Fitted
from labelrace.decisions import histogram
from labelrace.exceptions import MergeError
from labelrace.extreme import decoder as code_decoder
from labelrace.extreme import postings, residual_table
from labelrace.linear.merge import HALF_WAY, add_weights, joint_weights, weight_gain, why_incompatible
from labelrace.linear.rls import RLS, RLSState
from labelrace.typing import IntArray

if TYPE_CHECKING:
    from labelrace.extreme.classifier import State


def merge(one: Fitted, other: Fitted, columns: IntArray | None = None) -> Fitted:
    """Join two models that learned different rows, labels and features by name; ``columns`` as in `Fitted.merge`."""
    one, other = align(one, other, columns)
    return one.replace(one.schema, merge_states(one.algorithm.bank, one.state, other.state))


def align(one: Fitted, other: Fitted, columns: IntArray | None = None) -> tuple[Fitted, Fitted]:
    """Give two models the same labels and features; ``columns`` as in `Fitted.merge`.

    Raises
    ------
    MergeError
        Where a label has another code in the other model.
    """
    _, labels, _ = alignment.join_schemas(one.schema, other.schema, columns)
    in_both = np.flatnonzero(labels < one.schema.n_labels)
    if not np.array_equal(labels[in_both], in_both):
        raise MergeError(
            "The models cannot be merged: their labels have different numbers, and so different codes; give both the "
            "same label_names, or let both start from one model."
        )
    return alignment.align(one, other, columns)


def merge_states(bank: RLS, one: State, other: State) -> State:
    """Join two models of the same labels and features.

    Raises
    ------
    MergeError
        Where they do not have the same codes, columns or slots, or one has learned too few rows.
    """
    reason = why_incompatible(one.learners, other.learners)
    if len(one.decoder.total) != len(other.decoder.total) or len(one.table) != len(other.table):
        reason = "they have different numbers of pseudo labels or slots; let both start from one model"
    elif one.learners.warm_up.n_fitted or other.learners.warm_up.n_fitted:
        reason = "one of them has learned too few rows; let it learn 257"
    if reason:
        raise MergeError(f"The models cannot be merged: {reason}.")
    learners, kept = _learners(bank, one.learners, other.learners)
    lists = postings.merged(one.postings, other.postings)
    return one._replace(
        learners=learners,
        decoder=code_decoder.added(one.decoder, other.decoder, kept, uses_postings=len(lists) > 0),
        table=residual_table.merged(one.table, other.table),
        postings=lists,
        counts=histogram.merge(one.counts, other.counts),
        counts_left_out=histogram.merge(one.counts_left_out, other.counts_left_out),
        n_missed=one.n_missed + other.n_missed,
        n_alarms=max(one.n_alarms, other.n_alarms),
        n_drifts=max(one.n_drifts, other.n_drifts),
        fork=(),
    )


def _learners(bank: RLS, one: RLSState, other: RLSState) -> tuple[RLSState, float]:
    """Join learners; return also the share of the past that is kept, as if both had learned one after the other."""
    start, every = bank.with_zero_weights(one), np.arange(len(one.weights))
    gains = add_weights(*(weight_gain(bank, start, end, every) for end in (one, other)))
    return joint_weights(start, gains).between(HALF_WAY), gains.forgetting.kept_of_gains()
