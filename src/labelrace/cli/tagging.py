"""Taggers in the command: loading, training, and the messages about them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from labelrace.cli.messages import end_early, say, standard_input
from labelrace.cli.options import as_folders
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
    """Load a tagger; a model that is not one is refused. ``embed`` are the texts of ``--embed``."""
    from labelrace.base.state_file import load
    from labelrace.tables import Tagger

    loaded = load(path, embed=as_folders(embed))
    if not isinstance(loaded, Tagger):
        raise ValueError(f"{path} must be a tagger, made by 'labelrace train --tags', got {type(loaded).__name__}.")
    return loaded


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


def train_tagger(tagger: Tagger, model: str, files: list[str], out: Path, batch_size: int, reading: Reading) -> None:
    """Learn tables with tags, print the kinds of their columns, and save the tagger."""
    before, nothing = snapshot(tagger), "Nothing was learned: the source has no rows with tags."
    stopped = learn_files(tagger, files, batch_size, reading, nothing)
    tagger.save(out)
    message = f"{model} learned {tagger.n_rows_:,} rows with {len(tagger.tags_):,} tags: {out}"
    report_tagger(tagger, message, stopped, before, len(files))


def count_untouched(tagger: Tagger, file: str, batch_size: int, reading: Reading) -> tuple[int, int]:
    """Count the rows with tags in a file that was predicted, and those that have just the predicted tags."""
    from labelrace.tables.tags import tags_of_table
    from labelrace.tables.write import probabilities_in

    n_rows, n_same = 0, 0
    if file == "-" or tagger.tags is None:
        return n_rows, n_same
    reading = reading._replace(on_bad_row=reading.on_bad_row and (lambda _: None))
    try:
        for table in tables_of(file, batch_size, reading):
            written = probabilities_in(table)
            if written is None:
                break
            sets, _ = tags_of_table(table, tagger.tags, tagger.separator or tagger.separator_)
            for tags, probabilities, ranked in zip(sets, written, tagger.rank(table), strict=True):
                likely = dict(ranked.likely)
                own = sorted(float(f"{likely.get(tag, -1.0):.4g}") for tag in tags or ())
                n_rows += bool(tags)
                n_same += bool(tags) and own == sorted(probabilities)
    except (ValueError, OSError):
        n_rows += 1  # a row that cannot be read is an error when it is learned
    return n_rows, n_same


def people_said(tagger: Tagger, files: list[str], batch_size: int, reading: Reading) -> list[str]:
    """Return the files in which a predicted tag was changed, and print how many rows were not changed."""
    kept = []
    for file in files:
        n_rows, n_same = count_untouched(tagger, file, batch_size, reading)
        if n_rows and n_same == n_rows:
            say(
                f"Skipped {file}: no predicted tag was changed. Correct some, or, if all are right, remove the "
                "probabilities column.",
                err=True,
            )
            continue
        kept.append(file)
        if n_same:
            say(f"{n_same:,} of {_rows(n_rows)} of {file} have the tags that were predicted: confirmed by a person.")
    return kept


def learn_files(
    tagger: Tagger, files: list[str], batch_size: int, reading: Reading, nothing: str
) -> BaseException | None:
    """Predict and learn until the end, Ctrl-C or a bad row that is not skipped; return the error that stopped it.

    If no row has tags, raise an error with the message `nothing`. An error about one of several files names it.
    """
    from labelrace.tables.tagger_facts import quality_text

    is_new, rows, stopped = not tagger.is_fitted, 0, None
    before = None if is_new else tagger.state

    def describe() -> str:
        nonlocal is_new
        if is_new and tagger.is_fitted:
            _say_columns(tagger)
            is_new = False
        return quality_text(tagger.quality_) if tagger.is_fitted else ""

    for file in files:
        batches = ((table,) for table in tables_of(file, batch_size, reading))
        fit = type(tagger).prequential_fit
        learned, stopped = learn_batches(tagger, batches, fit, describe, reading.on_bad_row)
        rows += learned
        if stopped is not None:
            stopped = _of_file(stopped, file) if len(files) > 1 else stopped
            break
    tell_bad_rows(reading.on_bad_row)
    counted = tagger.state.counted_since(before) if tagger.is_fitted else None
    check_learned(counted is not None and counted.n_rows + counted.n_known > 0, stopped, nothing)
    if counted is not None and (skipped := rows - counted.n_rows - counted.n_known):
        say(f"Skipped {_rows(skipped)} without tags.")
    return stopped


def _of_file(error: BaseException, file: str) -> BaseException:
    """Return an error that names the file it is about."""
    if isinstance(error, KeyboardInterrupt) or file in str(error):
        return error
    return DataFormatError(f"{file}: {error}")


def report_tagger(
    tagger: Tagger, message: str, stopped: BaseException | None, before: Snapshot, n_files: int = 1
) -> None:
    """Print a message and the quality of the tagger; if the training was stopped, end the command with the error.

    ``before`` are the counts before the files were learned: their quality is printed separately.
    """
    from labelrace.tables.tagger_facts import quality_text

    counted = tagger.state.counted_since(before.state)
    known = _say_known(counted)
    if stopped is not None:
        end_early(stopped, " ".join([message, *known]))
    for line in (message, *known, *_drifts(before, snapshot(tagger))):
        say(line)
    quality = quality_text(counted.quality())
    if not quality:
        if before.state is None:
            say("No prequential quality: all rows were in one batch. Use a smaller --batch-size.")
        return
    of_files = f"{quality} ({_rows(counted.n_tested)})"
    if before.state is not None and before.state.n_tested:
        whole = f"{quality_text(tagger.quality_)} ({_rows(tagger.state.n_tested)})"
        of_files = f"{'This file' if n_files == 1 else 'These files'}: {of_files}; since the beginning: {whole}"
    say(f"Prequential quality (each row was predicted before it was learned): {of_files}.")
    tested = [(tag, counts) for tag, counts in counted.counts.items() if counts.tested >= _MIN_TESTED]
    best_first = sorted(tested, key=lambda pair: (-pair[1].f1(), pair[0]))
    good = [pair for pair in best_first if pair[1].f1() >= _GOOD_F1]
    if good:
        say(f"Predicted well: {_tag_list(good[:_MAX_LISTED])}.")
    if others := best_first[len(good) :]:
        say(f"Not predicted well: {_tag_list(others[::-1][:_MAX_LISTED])}.")


def _say_known(counted: TaggerState) -> list[str]:
    """Return sentences on the rows that had been learned before."""
    known, corrected = counted.n_known, counted.n_corrections
    lines = [f"{_rows(known)} {_were(known)} known, with the same tags, and skipped."] if known else []
    if corrected:
        lines.append(
            f"{_rows(corrected)} {_were(corrected)} known with other tags: learned as corrections, not tested."
        )
    return lines


def _drifts(before: Snapshot, after: Snapshot) -> list[str]:
    """Return a sentence if a drift was found, or is suspected."""
    if after.n_drifts > before.n_drifts:
        return ["A drift was found: rows have changed, and older ones count less from there on."]
    if after.n_alarms > before.n_alarms:
        return ["Maybe a drift: errors grew by more than chance, but it is not confirmed yet that rows have changed."]
    return []


def _rows(n: int) -> str:
    return "1 row" if n == 1 else f"{n:,} rows"


def _were(n: int) -> str:
    return "was" if n == 1 else "were"


def _tag_list(pairs: Iterable[tuple[str, TagCounts]]) -> str:
    return ", ".join(
        f"{tag} (F1 {counts.f1():.2f}, precision {counts.precision():.2f}, recall {counts.recall():.2f})"
        for tag, counts in pairs
    )


def _say_columns(tagger: Tagger) -> None:
    """Print the kind of each column."""
    tags, what = [tagger.tags] if isinstance(tagger.tags, str) else list(tagger.tags or []), "tags"
    if isinstance(tagger.tags, str) and tagger.separator_ is not None:
        what += f", separated by {'spaces' if tagger.separator_ == ' ' else repr(tagger.separator_)}"
    if tagger.predicts_one_tag:
        what += ", one a row"
    kinds = {column.name: str(column) for column in tagger.columns_}
    width = min(max(map(len, [*kinds, *tags])), 40)
    for name, kind in (kinds | dict.fromkeys(tags[:_MAX_LISTED], what)).items():
        say(f"{name:<{width}}  {kind}")
