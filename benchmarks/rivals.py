"""Other libraries: linear models with the scaling and the threshold rule of `race`, and the best setting of a grid.

Vowpal Wabbit and River, where they are installed, are given the features as `race` scales them and its threshold rule,
so that the learners are compared. All settings of a grid are run, and the one with the highest example F1 on each
dataset is shown. As it is chosen after the fact, it is what tuning could have reached, and not what a stream allows.

``python -m benchmarks rivals`` installs other systems, in the versions of ``data/rivals.txt``, into an environment of
their own; every benchmark finds them there. What they share with labelrace, such as NumPy, is labelrace's.
"""

from __future__ import annotations

import importlib
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Self

import numpy as np
import scipy.sparse
from sklearn.base import BaseEstimator

from labelrace.base import parameters
from labelrace.base.sparse import dense
from labelrace.decisions import monitoring, rules
from labelrace.decisions.monitoring import Monitor
from labelrace.evaluation import ModelSpec
from labelrace.linear import scaling
from labelrace.linear.scaling import ScalingState
from labelrace.typing import AnyMatrix, BoolArray, FloatArray

# Name, class here, and the package that it needs.
BASELINES = {"vowpal-wabbit": ("VowpalWabbit", "vowpalwabbit"), "river-logistic": ("RiverLogistic", "river")}
# Baselines that take an hour with many labels; they are run only if they are named.
_SLOW = ("river-logistic",)
# One parameter of each rival, and the values that are tried.
_GRIDS: dict[str, tuple[str, tuple[float, ...]]] = {
    "arow": ("r", (0.1, 0.3, 1.0, 3.0, 10.0)),
    "adagrad-logistic": ("rate", (0.03, 0.1, 0.3, 1.0, 3.0)),
    "adagrad-squared": ("rate", (0.003, 0.01, 0.03, 0.1, 0.3)),
    "ridge": ("penalty", (0.1, 1.0, 10.0, 100.0, 1000.0)),
    "vowpal-wabbit": ("rate", (0.05, 0.15, 0.5, 1.5, 5.0)),
    "river-logistic": ("rate", (0.03, 0.1, 0.3, 1.0)),
}
JUDGE = "example_f1"
_ENVIRONMENT = Path(__file__).parents[1] / ".venv-rivals"
NOT_INSTALLED = "Vowpal Wabbit is not compared: `python -m benchmarks rivals` installs it."


def rivals() -> None:
    """Install other systems, for the benchmarks alone.

    Vowpal Wabbit, omikuji and napkinXC are installed into `.venv-rivals`, for this version of Python.
    """
    venv.create(_ENVIRONMENT, with_pip=True)
    python, wanted = _ENVIRONMENT / "bin" / "python", Path(__file__).parent / "data" / "rivals.txt"
    if subprocess.run([python, "-m", "pip", "install", "--quiet", "--requirement", wanted], check=False).returncode:
        raise OSError(f"the packages of {wanted.name} could not be installed: see above")


def use_rivals() -> None:
    """Make the other systems importable, after all that is installed here."""
    sys.path.append(sysconfig.get_path("purelib", "venv", {"base": str(_ENVIRONMENT)}))


def available() -> list[str]:
    """List the baselines whose packages are installed, but for slow ones."""
    return [name for name, (_, package) in BASELINES.items() if name not in _SLOW and find_spec(package) is not None]


def spec_of(name: str, **given: float) -> ModelSpec:
    """Return a model of labelrace or a baseline, with a parameter if one is given, as the benchmark runs it.

    Examples
    --------
    >>> spec_of("arow", r=0.3).label
    'arow, r = 0.3'
    """
    label = _label(name, given)
    if name not in BASELINES:
        return ModelSpec(name, given, label)
    kind, package = BASELINES[name]
    if find_spec(package) is None:
        raise ValueError(f"models must be installed, and {name} needs {package}: see `python -m benchmarks rivals`")
    return ModelSpec(f"{__name__}:{kind}", given, label)


def settings(name: str) -> list[ModelSpec]:
    """Return a model with each value of its grid; none if it has no grid."""
    if name not in _GRIDS:
        return []
    parameter, values = _GRIDS[name]
    return [spec_of(name, **{parameter: value}) for value in values]


def best_in_hindsight(results: Mapping[str, float | None]) -> dict[str, str]:
    """Choose the best setting of each grid by the value of `JUDGE` of each model and setting on a dataset, if known.

    Returned are what is shown, such as ``arow, best of 5``, and the label of what was run, such as ``arow, r = 0.3``.
    """
    shown = {label: label for label in results}
    for name, (parameter, values) in _GRIDS.items():
        labels = [_label(name, {parameter: value}) for value in values]
        if tried := [shown.pop(label) for label in labels if label in shown]:
            scores = [-np.inf if (value := results[label]) is None else value for label in tried]
            shown[f"{name}, best of {len(tried)}"] = tried[int(np.argmax(scores))]
    return shown


def _label(name: str, given: Mapping[str, float]) -> str:
    return ", ".join([name, *(f"{key} = {value:g}" for key, value in given.items())])


class _Baseline(BaseEstimator):  # type: ignore[misc]
    """Another library's learners, between the scaling and the threshold rule of `race`.

    A library has `_start`, which makes the learners of some labels; `_rows`, which turns a matrix into what it takes;
    `_scores`, those of all labels for a row, in [0, 1]; and `_learn`, for a row and which labels it has.
    """

    _scaling: ScalingState
    _monitor: Monitor
    _start: Callable[[int], None]
    _rows: Callable[[AnyMatrix], list[Any]]
    _scores: Callable[[Any], list[float]]
    _learn: Callable[[Any, list[bool]], None]

    def __init__(self, *, rate: float) -> None:
        self.rate = rate

    def partial_fit(self, X: AnyMatrix, Y: AnyMatrix) -> Self:
        """Learn a batch, whose scores beforehand move the threshold."""
        parameters.check_number("rate", self.rate, 0, open_low=True)
        is_first, labels = "_monitor" not in vars(self), dense(Y).astype(float)
        if is_first:
            n_values = np.zeros(X.shape[1], dtype=np.intp)
            started = scaling.start(X, n_values, 0, np.random.default_rng(0))
            self._scaling, self._monitor = scaling.update(started, X), monitoring.init(labels.shape[1])
            self._start(labels.shape[1])
        # Each row is predicted before it is learned.
        scores = np.zeros(labels.shape)
        for index, (row, present) in enumerate(zip(self._scaled(X), (labels > 0).tolist(), strict=True)):
            scores[index] = self._scores(row)
            self._learn(row, present)
        # The first rows are predicted by a model that has learned almost nothing.
        counted = slice(len(labels) // 4 if is_first else 0, None)
        add = monitoring.count_rows if is_first else monitoring.observe
        self._monitor = add(self._monitor, scores[counted], labels[counted])
        if not is_first:
            self._scaling = scaling.update(self._scaling, X)
        return self

    def _scaled(self, X: AnyMatrix) -> list[Any]:
        return self._rows(scaling.transform(self._scaling, X))

    def _adjusted(self, X: AnyMatrix) -> tuple[FloatArray, rules.Rule]:
        offsets, rule = monitoring.decide(self._monitor, "cardinality")
        return rules.adjusted(np.array([self._scores(row) for row in self._scaled(X)]), offsets), rule

    def predict(self, X: AnyMatrix) -> BoolArray:
        """Choose as many labels as there were recently."""
        scores, rule = self._adjusted(X)
        return rules.choose(rule, scores)

    def predict_proba(self, X: AnyMatrix) -> FloatArray:
        """Estimate probabilities by how often labels with such scores were present recently."""
        scores, rule = self._adjusted(X)
        return rules.probabilities(rule, scores)


class VowpalWabbit(_Baseline):
    """Vowpal Wabbit's ``multilabel_oaa`` with logistic loss: adaptive, normalised, importance-aware updates.

    Parameters
    ----------
    rate : float, default=0.5
        Its ``--learning_rate``.
    """

    def __init__(self, *, rate: float = 0.5) -> None:
        super().__init__(rate=rate)

    def _start(self, n_labels: int) -> None:
        kind = f"--multilabel_oaa {n_labels} --loss_function logistic --probabilities"
        self._workspace = vowpal_wabbit(f"{kind} --learning_rate {self.rate} --bit_precision 24")
        self._n_labels = n_labels

    def _rows(self, X: AnyMatrix) -> list[str]:
        return vowpal_lines(X)

    def _scores(self, row: str) -> list[float]:
        # The list that Vowpal Wabbit returns may begin with the prediction of another row.
        scores: list[float] = self._workspace.predict(row)[-self._n_labels :]
        return scores

    def _learn(self, row: str, present: list[bool]) -> None:
        self._workspace.learn(f"{','.join(map(str, np.flatnonzero(present)))} {row}")


class RiverLogistic(_Baseline):
    """River's ``LogisticRegression`` with AdaGrad, one for each label.

    Parameters
    ----------
    rate : float, default=0.1
        The learning rate, by default River's own for AdaGrad.
    """

    def __init__(self, *, rate: float = 0.1) -> None:
        super().__init__(rate=rate)

    def _start(self, n_labels: int) -> None:
        from river.linear_model import LogisticRegression
        from river.optim import AdaGrad

        self._models = [LogisticRegression(optimizer=AdaGrad(self.rate)) for _ in range(n_labels)]

    def _rows(self, X: AnyMatrix) -> list[dict[int, float]]:
        return row_dicts(X)

    def _scores(self, row: dict[int, float]) -> list[float]:
        return [model.predict_proba_one(row)[True] for model in self._models]

    def _learn(self, row: dict[int, float], present: list[bool]) -> None:
        for model, is_present in zip(self._models, present, strict=True):
            model.learn_one(row, is_present)


def vowpal_wabbit(arguments: str) -> Any:
    """Start Vowpal Wabbit."""
    return importlib.import_module("vowpalwabbit").Workspace(f"{arguments} --quiet")


def vowpal_lines(X: AnyMatrix, Y: AnyMatrix | None = None) -> list[str]:
    """Write rows as Vowpal Wabbit reads them; without labels, for predictions.

    Examples
    --------
    >>> vowpal_lines([[0, 0.5, 1.0]]), vowpal_lines([[0, 0.5, 1.0]], [[1, 0, 1]])
    (['| 1:0.5 2:1'], ['0,2 | 1:0.5 2:1'])
    """
    texts = (" ".join(f"{column}:{value:.6g}" for column, value in row.items()) for row in row_dicts(X))
    if Y is None:
        return [f"| {text}" for text in texts]
    return [f"{','.join(map(str, labels))} | {text}" for labels, text in zip(row_dicts(Y), texts, strict=True)]


def row_dicts(X: AnyMatrix) -> list[dict[int, float]]:
    """Turn rows into dicts of their non-zeros, by column."""
    rows = scipy.sparse.csr_array(X)
    indices, values = rows.indices.tolist(), rows.data.tolist()
    spans = zip(rows.indptr[:-1].tolist(), rows.indptr[1:].tolist(), strict=True)
    return [dict(zip(indices[start:end], values[start:end], strict=True)) for start, end in spans]
