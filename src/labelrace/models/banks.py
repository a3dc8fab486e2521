"""The ``learner`` parameter: a name, a bank or an estimator becomes a bank."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from labelrace import parameters
from labelrace.learners.adapter import Adapter
from labelrace.learners.bank import Bank, Task
from labelrace.learners.naive_bayes import NaiveBayes
from labelrace.learners.ridge import Ridge
from labelrace.learners.rls import RLS
from labelrace.learners.sgd import SGD

__all__ = ["bank_of"]

_NAMED: dict[str, Bank[Any]] = {
    "naive_bayes": NaiveBayes(),
    # Normalised steps are stable on features of any scale.
    "sgd": SGD(rate=0.5, normalised=True, penalty=0.0),
    "ridge": Ridge(),
    "rls": RLS(),
}


def bank_of(learner: Any, task: Task | None = None, random_state: Any = None) -> Bank[Any]:
    """Make the bank that a ``learner`` parameter asks for.

    ``task`` is what it must be able to do, if that matters; a whole number as ``random_state`` seeds what draws.
    """
    seed = int(random_state) if isinstance(random_state, (int, np.integer)) else None
    if isinstance(learner, str):
        parameters.check_choice("learner", learner, ("auto", *_NAMED))
        auto = "sgd" if task == "regression" else "naive_bayes"
        bank = _NAMED[auto if learner == "auto" else learner]
        if isinstance(bank, RLS) and seed is not None:
            bank = replace(bank, seed=seed)
    elif isinstance(learner, Bank):
        bank = learner
    elif hasattr(learner, "partial_fit") and hasattr(learner, "predict") and not isinstance(learner, type):
        bank = Adapter(learner, seed)
    else:
        raise ValueError(f"learner={learner!r} cannot be updated: give an estimator that has partial_fit and predict.")
    if task is not None and bank.task != task:
        raise ValueError(f"learner={learner!r} is made for {bank.task}: it needs method={bank.task!r}.")
    return bank
