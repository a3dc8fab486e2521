"""What `evaluate` accepts, what it leaves alone, and how it refuses."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse

from labelrace.measures import PAPER_MEASURES, evaluate, is_loss, measure_names, needs_scores

Y_TRUE = np.array([[1, 0, 1, 0], [0, 1, 0, 0], [0, 0, 0, 0]])
Y_PRED = np.array([[1, 1, 0, 0], [0, 1, 0, 0], [0, 0, 0, 1]])
SCORES = np.array([[0.9, 0.8, 0.3, 0.1], [0.2, 0.7, 0.2, 0.1], [0.1, 0.2, 0.3, 0.4]])
FORMATS = ["bsr", "coo", "csc", "csr", "dia", "dok", "lil"]


def same(got, expected):
    return got == pytest.approx(expected, nan_ok=True, rel=0, abs=0)


def test_all_is_the_default_and_gives_floats_in_order():
    got = evaluate(Y_TRUE, Y_PRED, SCORES)
    assert list(got) == measure_names() == measure_names("all")
    assert len(got) == 19
    assert all(type(value) is float for value in got.values())


def test_sets_single_names_and_iterables():
    everything = evaluate(Y_TRUE, Y_PRED, SCORES)
    paper = evaluate(Y_TRUE, Y_PRED, measures="paper")
    assert tuple(paper) == PAPER_MEASURES == tuple(measure_names("paper"))
    assert paper == {name: everything[name] for name in PAPER_MEASURES}
    assert evaluate(Y_TRUE, Y_PRED, measures="micro_f1") == {"micro_f1": everything["micro_f1"]}
    assert list(evaluate(Y_TRUE, scores=SCORES, measures=iter(["one_error", "ndcg_at_12"]))) == [
        "one_error",
        "ndcg_at_12",
    ]


@pytest.mark.parametrize("convert", [np.asarray, pd.DataFrame, np.ndarray.tolist, lambda Y: Y.astype(bool)])
@pytest.mark.parametrize("dtype", [bool, np.uint8, np.int64, np.float32, float, object])
def test_dense_kinds(convert, dtype):
    got = evaluate(convert(Y_TRUE.astype(dtype)), convert(Y_PRED.astype(dtype)), SCORES)
    assert same(got, evaluate(Y_TRUE, Y_PRED, SCORES))


def test_data_frames_of_mixed_and_nullable_columns():
    mixed = pd.DataFrame({"a": [True, False, False], "b": [0, 1, 0], "c": [1.0, 0.0, 0.0], "d": [0, 0, 0]})
    nullable = pd.DataFrame(Y_PRED).astype("Int64")
    got = evaluate(mixed, nullable, pd.DataFrame(SCORES))
    assert same(got, evaluate(Y_TRUE, Y_PRED, SCORES))
    nullable.iloc[0, 0] = pd.NA
    with pytest.raises(ValueError, match="Y_pred must hold only 0 and 1"):
        evaluate(mixed, nullable, measures="micro_f1")


@given(
    st.tuples(st.integers(1, 6), st.integers(1, 8)).flatmap(
        lambda shape: st.tuples(*[hnp.arrays(np.int8, shape, elements=st.integers(0, 1))] * 2)
    ),
    st.sampled_from(FORMATS),
    st.sampled_from(FORMATS),
    st.sampled_from([sparse.coo_array, sparse.coo_matrix]),
    st.sampled_from([bool, np.int32, float]),
)
def test_sparse_equals_dense(labels, format_true, format_pred, kind, dtype):
    Y_true, Y_pred = labels
    scores = np.arange(Y_true.size, dtype=float).reshape(Y_true.shape) % 5
    sparse_true = kind(Y_true.astype(dtype)).asformat(format_true)
    sparse_pred = kind(Y_pred.astype(dtype)).asformat(format_pred)
    expected = evaluate(Y_true, Y_pred, scores)
    assert same(evaluate(sparse_true, sparse_pred, scores), expected)
    assert same(evaluate(Y_true, sparse_pred, scores), expected)
    assert same(evaluate(sparse_true, Y_pred, scores), expected)


def messy_csr():
    """Return `Y_TRUE` with unsorted indices, explicit zeros, and a one stored as 2 - 1."""
    data, indices = [1, 0, 2, -1, 0, 1], [2, 1, 0, 0, 3, 1]
    return sparse.csr_array((data, indices, [0, 4, 6, 6]), shape=Y_TRUE.shape)


def test_explicit_zeros_and_duplicates_mean_what_toarray_says():
    messy = messy_csr()
    assert (messy.toarray() == Y_TRUE).all()
    assert same(evaluate(messy, Y_PRED, SCORES), evaluate(Y_TRUE, Y_PRED, SCORES))
    either = sparse.coo_array(([True] * 4, ([0, 0, 0, 1], [0, 0, 2, 1])), shape=Y_TRUE.shape)
    assert same(evaluate(either, Y_PRED, SCORES), evaluate(Y_TRUE, Y_PRED, SCORES))
    twice = sparse.coo_array(([1, 1], ([0, 0], [0, 0])), shape=Y_TRUE.shape)
    with pytest.raises(ValueError, match="Y_pred must hold only 0 and 1"):
        evaluate(Y_TRUE, twice, measures="micro_f1")


def test_arguments_are_left_as_they_were():
    messy, Y_pred, scores = messy_csr(), Y_PRED.copy(), SCORES.copy()
    evaluate(messy, Y_pred, scores, measures=[*measure_names(), "ranking_loss", "ndcg_at_2"])
    assert messy.indices.tolist() == messy_csr().indices.tolist()
    assert messy.data.tolist() == messy_csr().data.tolist()
    assert (Y_pred == Y_PRED).all()
    assert (scores == SCORES).all()


def test_two_sparse_matrices_are_never_made_dense():
    shape = (50_000, 2_000_000)
    Y_true = sparse.coo_array((np.ones(3), ([0, 1, 49_999], [0, 1, 1_999_999])), shape=shape)
    Y_pred = sparse.coo_array((np.ones(2), ([0, 1], [0, 2])), shape=shape)
    got = evaluate(Y_true, Y_pred, measures=["micro_f1", "hamming_loss", "macro_recall", "subset_accuracy"])
    assert got == pytest.approx(
        {
            "micro_f1": 0.4,
            "hamming_loss": 3 / (50_000 * 2_000_000),
            "macro_recall": 1 / 2_000_000,
            "subset_accuracy": 1 - 2 / 50_000,
        },
        rel=1e-12,
    )


def test_what_no_measure_needs_is_not_looked_at():
    nonsense = object()
    assert evaluate(Y_TRUE, Y_PRED, nonsense, measures="paper") == evaluate(Y_TRUE, Y_PRED, measures="paper")
    coverage = evaluate(Y_TRUE, nonsense, SCORES, measures="coverage")
    assert coverage == evaluate(Y_TRUE, scores=SCORES, measures="coverage")


@pytest.mark.parametrize("name", ["accuracy", "precision_at_0", "ndcg_at_", "recall_at_5", "precision_at_1.5", ""])
@pytest.mark.parametrize("listed", [False, True])
def test_unknown_measure(name, listed):
    with pytest.raises(
        ValueError, match=rf"measures must be some of .*micro_f1.*ranking_loss.*ndcg_at_K, got '{name}'"
    ):
        evaluate(Y_TRUE, Y_PRED, SCORES, measures=["coverage", name] if listed else name)


def test_missing_argument():
    with pytest.raises(ValueError, match="Y_pred must be given to compute example_f1"):
        evaluate(Y_TRUE, scores=SCORES, measures=["coverage", "example_f1"])
    with pytest.raises(ValueError, match="scores must be given to compute precision_at_3"):
        evaluate(Y_TRUE, Y_PRED, measures=["precision_at_3"])


BAD_ARGUMENTS = {
    "Y_true must be two-dimensional": (Y_TRUE[0], Y_PRED[0], SCORES[0]),
    "Y_pred must be two-dimensional": (Y_TRUE, sparse.coo_array(Y_PRED[0]), SCORES),
    "scores must be two-dimensional": (Y_TRUE, Y_PRED, SCORES[0]),
    r"Y_pred must have the shape of Y_true, \(3, 4\), got \(2, 4\)": (Y_TRUE, Y_PRED[:2], SCORES),
    r"Y_pred must have the shape of Y_true, \(3, 4\), got \(3, 3\)": (Y_TRUE, sparse.csr_array(Y_PRED[:, :3]), SCORES),
    r"scores must have the shape of Y_true, \(3, 4\), got \(3, 3\)": (Y_TRUE, Y_PRED, SCORES[:, :3]),
    r"Y_true must have examples and labels, got the shape \(0, 4\)": (Y_TRUE[:0], Y_PRED[:0], SCORES[:0]),
    r"Y_true must have examples and labels, got the shape \(3, 0\)": (sparse.csr_array((3, 0)), Y_PRED, SCORES),
    "Y_true must hold only 0 and 1": (Y_TRUE * 2, Y_PRED, SCORES),
    "Y_pred must hold only 0 and 1": (Y_TRUE, Y_PRED * -1, SCORES),
    "Y_true must hold only 0 and 1$": (np.where(Y_TRUE, np.nan, 0), Y_PRED, SCORES),
    "Y_pred must hold only 0 and 1$": (Y_TRUE, sparse.csr_array(Y_PRED * 0.5), SCORES),
    "Y_true must hold only 0 and 1, got the dtype <U": (Y_TRUE.astype(str), Y_PRED, SCORES),
    "scores must be numbers, got NaN": (Y_TRUE, Y_PRED, np.where(Y_TRUE, np.nan, SCORES)),
    "scores must be real numbers, got the dtype complex": (Y_TRUE, Y_PRED, SCORES * 1j),
    "scores must be real numbers: could not convert": (Y_TRUE, Y_PRED, np.full((3, 4), "high", dtype=object)),
    "scores must be dense": (Y_TRUE, Y_PRED, sparse.csr_array(SCORES)),
}


@pytest.mark.parametrize("message", BAD_ARGUMENTS)
def test_bad_argument(message):
    with pytest.raises(ValueError, match=message):
        evaluate(*BAD_ARGUMENTS[message])


SETS_TRUE = [{"a", "c"}, {"b"}, set()]
SETS_PRED = [{"a", "b"}, {"b"}, {"d"}]


@pytest.mark.parametrize("convert", [list, tuple, lambda sets: [sorted(row) for row in sets], pd.Series])
def test_sets_of_names_mean_what_the_matrix_means(convert):
    expected = evaluate(Y_TRUE, Y_PRED, SCORES)
    assert same(evaluate(convert(SETS_TRUE), convert(SETS_PRED), SCORES), expected)
    order = [3, 1, 0, 2]
    named = evaluate(convert(SETS_TRUE), convert(SETS_PRED), SCORES[:, order], label_names=list("dbac"))
    assert same(named, evaluate(Y_TRUE[:, order], Y_PRED[:, order], SCORES[:, order]))


def test_sets_of_column_numbers_and_scores_alone():
    numbers = [[set(np.flatnonzero(row).tolist()) for row in Y] for Y in (Y_TRUE, Y_PRED)]
    assert evaluate(*numbers, measures="paper") == evaluate(Y_TRUE, Y_PRED, measures="paper")
    got = evaluate(SETS_TRUE, scores=SCORES, measures="coverage", label_names="abcd")
    assert got == evaluate(Y_TRUE, scores=SCORES, measures="coverage")


def test_labels_that_do_not_occur_count_only_if_named():
    assert evaluate([{"a"}], [["b"]], measures="hamming_loss") == {"hamming_loss": 1.0}
    assert evaluate([{"a"}], [["b"]], measures="hamming_loss", label_names="abcd") == {"hamming_loss": 0.5}


def test_empty_lists_are_empty_sets():
    assert evaluate([["a"], []], [[], []], measures="micro_recall") == {"micro_recall": 0.0}
    with pytest.raises(ValueError, match="must have examples and labels"):
        evaluate([set(), set()], [set(), set()], measures="micro_f1")


@pytest.mark.parametrize(
    ("labels", "options", "message"),
    [
        ((SETS_TRUE, Y_PRED), {}, "Y_pred must be sets of label names, .* got ndarray"),
        ((Y_TRUE.tolist(), SETS_PRED), {}, "Y_true must be sets of label names, .* got list"),
        ((SETS_TRUE, SETS_PRED), {"label_names": "abc"}, "Y_pred must hold labels of label_names, got 'd'"),
        ((SETS_TRUE, SETS_PRED[:2]), {}, r"Y_pred must have the shape of Y_true, .* got \(2, 3\)"),
        ((Y_TRUE, Y_PRED), {"label_names": "abcd"}, "label_names must be left out"),
    ],
)
def test_sets_that_do_not_fit(labels, options, message):
    with pytest.raises(ValueError, match=message):
        evaluate(*labels, measures="paper", **options)


def test_what_measures_need_and_mean():
    assert [name for name in measure_names() if needs_scores(name)] == [
        *("average_precision", "coverage", "micro_auc", "macro_auc"),
    ]
    assert needs_scores("ndcg_at_3")
    assert not needs_scores("paper")
    losses = ["coverage", "hamming_loss", "one_error", "ranking_loss"]
    assert (
        sorted(filter(is_loss, [*measure_names(), "one_error", "ranking_loss", "ndcg_at_3", "precision_at_K"]))
        == losses
    )


NAMES = ["a", "b", "c", "d"]


def frame(values, names):
    return pd.DataFrame(values, columns=names)


def sets(Y, names=NAMES):
    return [{names[column] for column in np.flatnonzero(row)} for row in Y]


@pytest.mark.parametrize("names", [NAMES, [30, 10, 40, 20], [0, 1, 2, 3], [3, 1, 0, 2]])
def test_columns_of_frames_are_matched_by_name(names):
    expected = evaluate(Y_TRUE, Y_PRED, SCORES)
    other = [2, 0, 3, 1]
    shuffled = [frame(values, names).iloc[:, other] for values in (Y_PRED, SCORES)]
    assert same(evaluate(frame(Y_TRUE, names), *shuffled), expected)
    texts = list(map(str, names))
    assert same(evaluate(sets(Y_TRUE, texts), sets(Y_PRED, texts), shuffled[1], label_names=texts), expected)


def test_columns_of_other_names():
    for labels in ({"Y_true": frame(Y_TRUE, NAMES)}, {"Y_true": sets(Y_TRUE), "label_names": NAMES}):
        with pytest.raises(ValueError, match=r"scores must have (the columns of Y_true|label_names), got others"):
            evaluate(**labels, scores=frame(SCORES, list("abcx")), measures="coverage")
    with pytest.raises(
        ValueError, match="Y_pred must have its columns in the order 0, 1, 2, …, as Y_true has no names"
    ):
        evaluate(Y_TRUE, frame(Y_PRED, range(4))[[3, 1, 0, 2]], measures="micro_f1")
    expected = evaluate(Y_TRUE, Y_PRED, measures="micro_f1")
    for truth in (Y_TRUE, pd.DataFrame(Y_TRUE)):
        with pytest.warns(UserWarning, match="Y_pred has names of labels, but Y_true has none"):
            assert evaluate(truth, frame(Y_PRED, NAMES), measures="micro_f1") == expected
    # Columns without names are those of an array.
    assert evaluate(frame(Y_TRUE, NAMES), pd.DataFrame(Y_PRED), measures="micro_f1") == expected
    assert evaluate(frame(Y_TRUE, [30, 10, 40, 20]), pd.DataFrame(Y_PRED), measures="micro_f1") == expected


def test_names_in_another_form_are_the_same():
    raw, written = [{"Cafe\u0301", " oven "}, {"b"}], [{"Caf\u00e9", "oven"}, {"b"}]
    for names in (None, ["Caf\u00e9", "oven", "b"], ["Cafe\u0301", " oven ", "b"]):
        assert evaluate(raw, written, measures="micro_f1", label_names=names) == {"micro_f1": 1.0}
        assert evaluate(written, raw, measures="micro_f1", label_names=names) == {"micro_f1": 1.0}
    # Names that are told apart stay so.
    assert evaluate([{"a"}], [{"a "}], measures="micro_f1", label_names=["a", "a "]) == {"micro_f1": 0.0}
    with pytest.raises(ValueError, match="Y_pred must hold labels of label_names, got 'x'"):
        evaluate(raw, [{"x"}, set()], measures="micro_f1", label_names=["Caf\u00e9", "oven", "b"])
