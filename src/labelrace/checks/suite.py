"""The list of the checks, and how they are run."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any
from unittest import SkipTest

from labelrace.checks import contract, inputs
from labelrace.checks.model_under_test import ModelUnderTest, Permute

CHECKS: tuple[Callable[[ModelUnderTest], None], ...] = (
    contract.check_not_fitted,
    contract.check_outputs,
    contract.check_determinism,
    contract.check_purity,
    contract.check_aliasing,
    contract.check_sparse_aliasing,
    contract.check_returned_arrays,
    contract.check_refused_batches,
    contract.check_save_and_load,
    contract.check_merging,
    inputs.check_unseen_labels,
    inputs.check_constant_labels,
    inputs.check_one_label,
    inputs.check_one_row,
    inputs.check_batches_of_one,
    inputs.check_zero_features,
    inputs.check_sparse,
    inputs.check_permuted_labels,
    inputs.check_new_labels,
    inputs.check_new_features,
    inputs.check_label_sets,
    inputs.check_predict_labels,
    inputs.check_predict_top,
)
"""The checks, each a function with a docstring that says what it checks and why."""


def check_model(model: Any, *, permute: Permute = inputs.permute_known) -> dict[str, str]:
    """Check that a model does what every online multi-label model must do.

    The checks are those of `CHECKS`. They fit copies of the model to small data of their own, so parameters that fix
    the number of labels or of features must be left open. A floating-point warning counts as a failure.

    Parameters
    ----------
    model
        An unfitted model; it is copied, not changed. Parameters called ``random_state`` are set in the copies.
    permute : callable, default=permute_known
        ``permute(model, order)`` makes an unfitted copy ready for labels in another order, and returns it; for models
        that draw something at random for each label. The default knows the models of this library.

    Returns
    -------
    dict of str
        The checks that do not apply to this model, by name, each with the reason.

    Raises
    ------
    AssertionError
        At the first check that fails: its name, the model and what happened.

    Examples
    --------
    >>> from labelrace import BinaryRelevanceClassifier, OfflineRACEClassifier, checks
    >>> skipped = checks.check_model(BinaryRelevanceClassifier())
    >>> skipped = checks.check_model(OfflineRACEClassifier())
    >>> skipped["check_batches_of_one"]
    'it is offline: it learns all data at once'
    """
    skipped = {}
    for name, check in iter_checks(model, permute=permute):
        try:
            check()
        except SkipTest as reason:
            skipped[name] = str(reason)
    return skipped


def iter_checks(model: Any, *, permute: Permute = inputs.permute_known) -> Iterator[tuple[str, Callable[[], None]]]:
    """Iterate over the checks of a model, to run them one by one.

    A check that does not apply to the model raises ``unittest.SkipTest`` with the reason, which pytest understands.

    Parameters
    ----------
    model, permute
        As for `check_model`.

    Yields
    ------
    name : str
        The check's name.
    check : callable
        Runs the check; without arguments.

    Examples
    --------
    As tests of their own, in pytest::

        @pytest.mark.parametrize(("name", "check"), list(checks.iter_checks(MyModel())))
        def test_my_model(name, check):
            check()

    >>> from labelrace import RACEClassifier, checks
    >>> for name, check in checks.iter_checks(RACEClassifier()):
    ...     if "permuted" in name:
    ...         check()
    """
    under_test = ModelUnderTest(model, permute)
    for check in CHECKS:
        yield check.__name__, partial(_run, check, under_test)


def _run(check: Callable[[ModelUnderTest], None], under_test: ModelUnderTest) -> None:
    """Run a check; whatever it raises, but for a skip, is a failure that names the check and the model."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            check(under_test)
    except SkipTest:
        raise
    except Exception as error:
        what = error if isinstance(error, AssertionError) else f"raised {type(error).__name__}: {error}"
        raise AssertionError(f"{check.__name__}: {' '.join(repr(under_test.model).split())}: {what}") from error
