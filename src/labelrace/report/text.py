"""Words and numbers for readers: names of measures, decimals, times, sizes, enumerations."""

from __future__ import annotations

from collections.abc import Iterable

from labelrace.measures import uses_zero_division

MISSING = "–"

_WORDS = {"f1": "F1", "auc": "AUC", "ndcg": "NDCG"}
_MOST_DECIMALS = 5


def measure_label(name: str) -> str:
    """Return the name of a measure as a heading.

    >>> measure_label("micro_f1"), measure_label("hamming_loss")
    ('Micro F1', 'Hamming loss')
    """
    text = " ".join(_WORDS.get(word, word) for word in name.split("_"))
    return text[:1].upper() + text[1:]


def decimals_for(values: Iterable[float | None]) -> int:
    """Return the decimals that distinguish the values of one column: three significant digits of the largest.

    >>> decimals_for([0.35, 0.2]), decimals_for([143.6]), decimals_for([0.031, None])
    (3, 1, 4)
    """
    largest = max((abs(value) for value in values if value is not None), default=1.0)
    for decimals, bound in enumerate((1000.0, 100.0, 10.0, 0.1, 0.01)):
        if largest >= bound:
            return decimals
    return _MOST_DECIMALS if largest > 0 else 3


def as_value(value: float | None, decimals: int, missing: str = MISSING) -> str:
    """Return a number with a fixed count of decimals, or the mark for a missing one."""
    return missing if value is None else f"{value:,.{decimals}f}"


def as_significant(value: float | None) -> str:
    """Return a number with three significant digits and no exponent, for times.

    >>> [as_significant(x) for x in (0.012345, 3.14159, 24.6789, 59603.26)]
    ['0.0123', '3.14', '24.7', '59,603']
    """
    if value is None:
        return MISSING
    for decimals, bound in enumerate((100.0, 10.0, 1.0, 0.1, 0.01, 0.001)):
        if value >= bound:
            return f"{value:,.{decimals}f}"
    return "0" if value == 0 else f"{value:.2g}"


def as_signed(value: float | None) -> str:
    """Return a number with its sign, for log ratios.

    >>> [as_signed(x) for x in (1.5, -0.25, 0.001)]
    ['+1.50', '−0.25', '0']
    """
    if value is None:
        return MISSING
    return "0" if round(value, 2) == 0 else f"{value:+.2f}".replace("-", "−")


def as_bytes(value: float | None) -> str:
    """Return a size in the unit that suits it.

    >>> as_bytes(3_500_000)
    '3.50 MB'
    """
    if value is None:
        return MISSING
    for unit in ("B", "kB", "MB", "GB"):
        if value < 1000:
            return f"{as_significant(value)} {unit}"
        value /= 1000
    return f"{as_significant(value)} TB"


def plural(count: int, noun: str, nouns: str | None = None) -> str:
    """Return a count with its noun.

    >>> plural(1, "model"), plural(1200, "row"), plural(0, "batch", "batches")
    ('1 model', '1,200 rows', '0 batches')
    """
    return f"{count:,} {noun if count == 1 else nouns or noun + 's'}"


def listing(items: Iterable[str]) -> str:
    """Return names as an enumeration.

    >>> listing(["a", "b", "c"])
    'a, b and c'
    """
    names = list(items)
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def macro_note(measures: Iterable[str], zero_division: float) -> str:
    """Return a sentence on how macro averages count labels that are neither there nor predicted; nothing without any.

    >>> macro_note(["macro_f1"], 0.0)
    'Macro averages count a label that is neither there nor predicted in a batch as 0, as scikit-learn does.'
    """
    if not any(map(uses_zero_division, measures)):
        return ""
    whose = {0.0: ", as scikit-learn does", 1.0: ", as the paper does"}.get(zero_division, "")
    return f"Macro averages count a label that is neither there nor predicted in a batch as {zero_division:g}{whose}."
