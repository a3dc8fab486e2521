"""Taggers in the command: loading, training, and the messages about them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from labelrace.cli.messages import end_early, number_of, say, standard_input
from labelrace.cli.options import as_folders, partial_target
from labelrace.cli.progress import check_learned, learn_batches
from labelrace.exceptions import DataFormatError

if TYPE_CHECKING:
    from labelrace.streams.table_sources import Reading
    from labelrace.tables import TagCounts, Tagger
    from labelrace.tables.read import Table
    from labelrace.tables.state import TaggerState

# Number of tested rows with a tag from which its F1 is reported, and the F1 from which it is predicted well.
_MIN_TESTED, _GOOD_F1 = 10, 0.5
_MAX_LISTED = 5
# Signs between tags that are said by their names.
_SIGNS = {" ": "spaces", "\t": "tabs", "\n": "line ends"}


class Snapshot(NamedTuple):
    """The counts of a tagger at some moment; empty before its first row."""

    state: TaggerState | None
    n_alarms: int
    n_drifts: int

    @property
    def n_rows(self) -> int:
        """Number of rows learned."""
        return self.state.n_rows if self.state else 0


def snapshot(tagger: Tagger) -> Snapshot:
    """Return the counts of a tagger so far."""
    model = tagger.model_ if tagger.is_fitted else None
    alarms, drifts = (int(getattr(model, name, 0)) for name in ("n_alarms_", "n_drifts_"))
    return Snapshot(tagger.state if tagger.is_fitted else None, alarms, drifts)


def load_tagger(path: Path, embed: list[str] | None = None) -> Tagger:
    """Load a tagger to ask it; see `load_whole`."""
    return load_whole(path, embed)[0]


def load_whole(path: Path, embed: list[str] | None = None) -> tuple[Tagger, Any]:
    """Load a tagger, and what is to be saved after it has changed: itself, or what keeps rows for it until tags come.

    A model that is no tagger is refused. ``embed`` are the texts of ``--embed``.
    """
    from labelrace.base.state_file import load
    from labelrace.delayed import DelayedLabels
    from labelrace.tables import Tagger

    loaded = load(path, embed=as_folders(embed))
    tagger = loaded.model if isinstance(loaded, DelayedLabels) else loaded
    if not isinstance(tagger, Tagger):
        raise ValueError(f"{path} must be a tagger, made by 'labelrace train --tags', got {type(tagger).__name__}.")
    return tagger, loaded


def tables_of(source: str, batch_size: int, reading: Reading) -> Iterator[Table]:
    """Yield the rows of a file, or of standard input if the source is ``-``."""
    from labelrace.base.parameters import check_whole
    from labelrace.tables import file_tables, text_tables

    check_whole("--batch-size", batch_size, 1)
    if source == "-":
        return text_tables(standard_input(), batch_size, reading)
    return file_tables(source, batch_size, reading)


def tell_bad_rows(on_bad_row: Any) -> None:
    """Print which rows were skipped, with --skip-bad-rows."""
    if on_bad_row is not None:
        on_bad_row.tell()


def read_vocabulary(path: Path | None) -> dict[str, Any] | None:
    """Read tags that are known beforehand, as `labelrace.Tagger` takes them."""
    from labelrace.tables.tag_details import read_details

    return None if path is None else {tag: one._asdict() for tag, one in read_details(str(path)).items()}


def train_tagger(
    tagger: Tagger, model: str, files: list[str], out: Path, batch_size: int, reading: Reading, confirmed: bool
) -> None:
    """Learn tables with tags, print the kinds of their columns, and save the tagger."""
    before, nothing = snapshot(tagger), "Nothing was learned: the source has no rows with tags."
    learned = learn_files(tagger, files, batch_size, reading, nothing, confirmed)
    check_learned(tagger.is_fitted, learned.stopped, f"Nothing was learned. {unchanged_text(learned.n_unchanged)}")
    target, kept = (out, []) if learned.stopped is None else partial_target(out)
    tagger.save(target)
    check_ended(tagger, learned, before, target, *kept)
    counts = f"{number_of(tagger.n_rows_, 'row')} with {number_of(len(tagger.tags_), 'tag')}"
    report_tagger(tagger, f"{model} learned {counts}: {out}", learned, before, len(files))


class Learned(NamedTuple):
    """How files were learned."""

    stopped: BaseException | None = None  # what ended it early
    n_unchanged: int = 0  # rows that were left out, as they had just the tags that were predicted
    n_untagged: int = 0  # rows that were left out, as they had no tags
    on_bad_row: Any = None  # knows which rows could not be read or learned

    def tell_skipped(self) -> None:
        """Print which rows were left out: when what was learned is saved, as nobody may be there to read it."""
        tell_bad_rows(self.on_bad_row)
        if self.n_untagged:
            say(f"Skipped {number_of(self.n_untagged, 'row')} without tags.")


def learn_files(
    tagger: Tagger, files: list[str], batch_size: int, reading: Reading, nothing: str, confirmed: bool = False
) -> Learned:
    """Predict and learn until the end, Ctrl-C or a row that is wrong and not to be skipped.

    If no row has tags, raise an error with the message `nothing`. An error about one of several files names it.
    """
    from labelrace.tables.tagger_facts import quality_text

    is_new, rows, stopped, unchanged = not tagger.is_fitted, 0, None, list[int]()
    # A part is learned completely or not at all: the tagger must not cut it into others.
    size = min(batch_size, tagger.batch_size)
    before = None if is_new else tagger.state

    def describe() -> str:
        nonlocal is_new
        if is_new and tagger.is_fitted:
            is_new = False
            _say_columns(tagger)
        return quality_text(tagger.quality_) if tagger.is_fitted else ""

    def learn(learner: Tagger, table: Table) -> None:
        found = list[int]()
        for batch in learner.tagged_batches(table, confirmed=confirmed, on_unchanged=found.append):
            learner.learn_batch(*batch, test=True)
        # To find a row that is refused, copies learn parts of a table.
        unchanged.extend(found if learner is tagger else ())

    for file in files:
        batches = ((table,) for table in tables_of(file, size, reading))
        learned, stopped = learn_batches(tagger, batches, learn, describe, reading.on_bad_row)
        rows += learned
        if stopped is not None:
            stopped = _of_file(stopped, file) if len(files) > 1 else stopped
            break
    counted, n_unchanged = tagger.state.counted_since(before) if tagger.is_fitted else None, sum(unchanged)
    n_seen = n_unchanged + (counted.n_rows + counted.n_known if counted is not None else 0)
    if not n_seen:
        tell_bad_rows(reading.on_bad_row)
    check_learned(n_seen > 0, stopped, nothing)
    return Learned(stopped, n_unchanged, rows - n_seen, reading.on_bad_row)


def _of_file(error: BaseException, file: str) -> BaseException:
    """Return an error that names the file it is about."""
    if isinstance(error, KeyboardInterrupt) or file in str(error):
        return error
    return DataFormatError(f"{file}: {error}")


def check_ended(tagger: Tagger, learned: Learned, before: Snapshot, saved: Path, *more: str) -> None:
    """If the training was stopped, end the command with what stopped it, and with what was learned and saved."""
    learned.tell_skipped()
    if learned.stopped is not None:
        counted = tagger.state.counted_since(before.state)
        known = _say_known(counted, learned.n_unchanged)
        end_early(learned.stopped, counted.n_rows, saved, *more, *known)


def report_tagger(tagger: Tagger, message: str, learned: Learned, before: Snapshot, n_files: int = 1) -> None:
    """Print a message, and how well tags were predicted.

    ``before`` are the counts before the files were learned: their quality is printed separately.
    """
    from labelrace.tables.state import F1_OF_NOTHING
    from labelrace.tables.tagger_facts import quality_text

    counted = tagger.state.counted_since(before.state)
    known = _say_known(counted, learned.n_unchanged)
    for line in (message, *known, *_drifts(before, snapshot(tagger))):
        say(line)
    quality = quality_text(counted.quality())
    if not quality:
        if before.state is None:
            say("No row was tested: the first 100 rows, or all of one batch, are learned before any is predicted.")
        return
    of_files = f"{quality} ({number_of(counted.n_tested, 'row')})"
    if before.state is not None and before.state.n_tested:
        whole = f"{quality_text(tagger.quality_)} ({number_of(tagger.state.n_tested, 'row')})"
        of_files = f"{'This file' if n_files == 1 else 'These files'}: {of_files}; since the beginning: {whole}"
    say(f"Prequential quality (each row was predicted before it was learned): {of_files}.")
    tested = [(tag, counts) for tag, counts in counted.counts.items() if counts.tested >= _MIN_TESTED]
    best_first = sorted(tested, key=lambda pair: (-pair[1].f1(), pair[0]))
    good = [pair for pair in best_first if pair[1].f1() >= _GOOD_F1]
    if good:
        say(f"Predicted well: {_tag_list(good[:_MAX_LISTED])}.")
    if others := best_first[len(good) :]:
        say(f"Not predicted well: {_tag_list(others[::-1][:_MAX_LISTED])}.")
    say(F1_OF_NOTHING)


def _say_known(counted: TaggerState, n_unchanged: int) -> list[str]:
    """Return sentences on the rows that had been learned before, or that had just the tags predicted for them."""
    known, corrected, lines = counted.n_known, counted.n_corrections, list[str]()
    if known and n_unchanged:
        lines = [
            f"{number_of(known + n_unchanged, 'row')} were skipped: {known:,} {_were(known)} known, with the same "
            f"tags, and {n_unchanged:,} had their predicted tags unchanged; --confirmed learns them."
        ]
    elif known:
        lines = [f"{number_of(known, 'row')} {_were(known)} known, with the same tags, and skipped."]
    elif n_unchanged:
        lines = [unchanged_text(n_unchanged)]
    if corrected:
        lines.append(
            f"{number_of(corrected, 'row')} {_were(corrected)} known with other tags: learned as corrections, "
            "not tested."
        )
    return lines


def unchanged_text(n_rows: int) -> str:
    """Return a sentence on rows whose tags nobody has changed."""
    return (
        f"{number_of(n_rows, 'row')} had {'its' if n_rows == 1 else 'their'} predicted tags unchanged and "
        f"{_were(n_rows)} skipped; --confirmed learns {'it' if n_rows == 1 else 'them'}."
    )


def _drifts(before: Snapshot, after: Snapshot) -> list[str]:
    """Return a sentence if a drift was found, or is suspected."""
    if after.n_drifts > before.n_drifts:
        return ["A drift was found: rows have changed, and older ones count less from there on."]
    if after.n_alarms > before.n_alarms:
        return ["Maybe a drift: errors grew by more than chance, but it is not confirmed yet that rows have changed."]
    return []


def _were(n: int) -> str:
    return "was" if n == 1 else "were"


def _tag_list(pairs: Iterable[tuple[str, TagCounts]]) -> str:
    return ", ".join(
        f"{tag} (F1 {counts.f1():.2f}, precision {counts.precision():.2f}, recall {counts.recall():.2f})"
        for tag, counts in pairs
    )


def _say_columns(tagger: Tagger) -> None:
    """Print the kind of each column, and whether rows that come again can be noticed."""
    from labelrace.tables.known_rows import are_told_apart

    tags, what = [tagger.tags] if isinstance(tagger.tags, str) else list(tagger.tags or []), "tags"
    if isinstance(tagger.tags, str) and tagger.separator_ is not None:
        what += f", separated by {_SIGNS.get(tagger.separator_, repr(tagger.separator_))}"
    if tagger.predicts_one_tag:
        what += ", one a row"
    kinds = {column.name: str(column) for column in tagger.columns_}
    width = min(max(map(len, [*kinds, *tags])), 40)
    for name, kind in (kinds | dict.fromkeys(tags[:_MAX_LISTED], what)).items():
        say(f"{name:<{width}}  {kind}")
    if tagger.skip_known and not are_told_apart(tagger.columns_):
        say("No column tells rows apart, neither an identifier nor texts: a row that is learned again counts again.")
