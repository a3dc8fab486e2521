"""The walk of a second batch: how many of our functions are called, in how many files, and in which order.

A reader who follows ``partial_fit`` makes this walk. Calls are those of Python functions of labelrace; a change of file
is a call in another file than the call before it. The first batch, of 1,000 rows, sets a model up; the second, of 200
rows, is like every later one:

- ``RACEClassifier`` and ``LabelRaceClassifier``: dense, 50 features, 20 labels;
- ``HashedRACEClassifier``: sparse, 1,000 features of which 20 are in a row, 20 labels;
- ``Tagger``: rows with a title, a text of 20 words, a category and two of 20 tags.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Annotated, Any, NamedTuple

import numpy as np
import scipy.sparse
import typer

import labelrace
from labelrace.typing import AnyMatrix

_FIRST, _SECOND = 1000, 200


class Step(NamedTuple):
    """One call: the file, below the package, and the function."""

    file: str
    function: str

    def __str__(self) -> str:
        return f"{self.file.removesuffix('.py')}:{self.function}"


def counts(steps: list[Step]) -> tuple[int, int, int]:
    """Count calls, files and changes of file.

    Examples
    --------
    >>> counts([Step("a.py", "f"), Step("b.py", "g"), Step("b.py", "h"), Step("a.py", "f")])
    (4, 2, 2)
    """
    files = [step.file for step in steps]
    return len(steps), len(set(files)), sum(one != other for one, other in pairwise(files))


@contextmanager
def recorded() -> Iterator[list[Step]]:
    """Record the calls of our functions in this thread."""
    steps: list[Step] = []
    package = str(Path(labelrace.__file__).parent) + os.sep

    def note(frame: FrameType, event: str, argument: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(package):
            steps.append(Step(code.co_filename.removeprefix(package), code.co_name))

    sys.setprofile(note)
    try:
        yield steps
    finally:
        sys.setprofile(None)


def batch(n_rows: int, n_features: int = 50, density: float | None = None) -> tuple[AnyMatrix, AnyMatrix]:
    """Draw a batch whose 20 labels depend on its features."""
    rng = np.random.default_rng(n_rows)
    X: AnyMatrix = rng.normal(size=(n_rows, n_features))
    if density is not None:
        X = scipy.sparse.random_array((n_rows, n_features), density=density, format="csr", rng=rng)
    scores = X @ np.random.default_rng(0).normal(size=(n_features, 20))
    Y = (scores > np.quantile(scores, 0.85)).astype(np.int8)
    return X, Y if density is None else scipy.sparse.csr_array(Y)


def tickets(n_rows: int) -> tuple[list[dict[str, str]]]:
    """Draw rows with a title, a text, a category and two tags, which words of the text tell."""
    rng = np.random.default_rng(n_rows)
    rows = []
    for tags in rng.integers(0, 20, size=(n_rows, 2)).tolist():
        words = [f"word{word}" for word in rng.zipf(1.3, size=18) % 2000] + [f"about{tag}" for tag in tags]
        named = {"title": " ".join(words[:4]), "body": " ".join(words), "product": f"product {tags[0] % 5}"}
        rows.append({**named, "tags": " ".join(sorted({f"tag-{tag}" for tag in tags}))})
    return (rows,)


MODELS: dict[str, tuple[Callable[..., Any], Callable[[int], tuple[Any, ...]]]] = {
    "RACEClassifier": (labelrace.RACEClassifier, batch),
    "LabelRaceClassifier": (labelrace.LabelRaceClassifier, batch),
    "HashedRACEClassifier": (labelrace.HashedRACEClassifier, partial(batch, n_features=1000, density=0.02)),
    "Tagger": (partial(labelrace.Tagger, "tags"), tickets),
}


def walk(
    everything: Annotated[
        bool, typer.Option("--list", help="Print every call, in order, as folder/file:function.")
    ] = False,
) -> None:
    """Count the calls and files of a second partial_fit."""
    print(f"{'second partial_fit of':<24}{'calls':>8}{'files':>8}{'changes of file':>18}")
    for name, (make, draw) in MODELS.items():
        model, second = make(random_state=0).partial_fit(*draw(_FIRST)), draw(_SECOND)
        with recorded() as steps:
            model.partial_fit(*second)
        calls, files, changes = counts(steps)
        print(f"{name:<24}{calls:>8,}{files:>8}{changes:>18}")
        if everything:
            print(*(f"  {step}" for step in steps), sep="\n")
