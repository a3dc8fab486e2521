"""How large a model of compressed labels is: a given amount of memory, divided between pseudo labels and the table."""

from __future__ import annotations

from typing import NamedTuple

from labelrace.extreme import postings

# Smallest and largest number of pseudo labels, and their share of the memory; smallest and largest number of slots.
_MIN_CODES, _MAX_CODES, _CODES_SHARE = 16, 128, 0.4
# The largest number of pseudo labels where the decoder alone has to find the candidates among many labels.
_MAX_CODES_WITHOUT_POSTINGS = 256
_MIN_SLOTS, _MAX_SLOTS = 1 << 10, 1 << 24


class Sizes(NamedTuple):
    """How large a model is: its pseudo labels, and the slots of its table."""

    n_components: int
    n_slots: int


def sizes_for(
    max_memory: float, n_columns: int, n_labels: int, n_components: int | None = None, *, uses_postings: bool = True
) -> Sizes:
    """Divide an amount of memory, in bytes, between pseudo labels and the table.

    ``uses_postings`` tells whether features offer candidates, where labels are many.

    Examples
    --------
    >>> sizes_for(1e8, n_columns=17_000, n_labels=35_000)
    Sizes(n_components=128, n_slots=16777216)
    >>> sizes_for(2e5, n_columns=500, n_labels=1_000)
    Sizes(n_components=16, n_slots=22000)
    """
    cells = max_memory / 4.0
    # A column has two precisions of eight bytes beside its weights, and a label its count and its bound.
    cells -= 4.0 * n_columns + 2.0 * n_labels
    # And its postings, which may begin later.
    cells -= postings.LABELS_PER_FEATURE * n_columns if postings.enabled(n_labels) else 0.0
    each = n_columns + n_labels
    if n_components is None:
        by_decoder_alone = postings.enabled(n_labels) and not uses_postings
        most = _MAX_CODES_WITHOUT_POSTINGS if by_decoder_alone else _MAX_CODES
        n_components = int(min(max(_CODES_SHARE * cells / each, _MIN_CODES), most)) // 2 * 2
    n_slots = int(min(max(cells - n_components * each, _MIN_SLOTS), _MAX_SLOTS))
    return Sizes(n_components, n_slots)
