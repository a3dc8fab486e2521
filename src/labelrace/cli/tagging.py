"""Taggers in the command: how they are loaded and trained, and what is printed about them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from labelrace.cli.messages import end_early, say, standard_input
from labelrace.cli.progress import check_learned, learn_batches

if TYPE_CHECKING:
    from labelrace.tables import TagCounts, Tagger
    from labelrace.tables.read import Table

# Number of tested rows with a tag from which its F1 is reported, and the F1 from which it is predicted well.
_MIN_TESTED, _GOOD_F1 = 10, 0.5
_MAX_LISTED = 5


def load_tagger(path: Path) -> Tagger:
    """Load a tagger; a model that is not one is refused."""
    from labelrace.base.state_file import load
    from labelrace.tables import Tagger

    loaded = load(path)
    if not isinstance(loaded, Tagger):
        raise ValueError(f"{path} must be a tagger, made by 'labelrace train --tags', got {type(loaded).__name__}.")
    return loaded


def tables_of(source: str, batch_size: int, delimiter: str | None) -> Iterator[Table]:
    """Yield the rows of a file, or of standard input if the source is ``-``."""
    from labelrace.base.parameters import check_whole
    from labelrace.tables import file_tables, text_tables

    check_whole("--batch-size", batch_size, 1)
    if source == "-":
        return text_tables(standard_input(), batch_size, delimiter or ",")
    return file_tables(source, batch_size, delimiter)


def train_tagger(tagger: Tagger, model: str, source: str, out: Path, batch_size: int, delimiter: str | None) -> None:
    """Learn a table with tags, print the kinds of its columns, and save the tagger."""
    nothing = "Nothing was learned: the source has no rows with tags."
    stopped = learn_tables(tagger, tables_of(source, batch_size, delimiter), nothing)
    tagger.save(out)
    message = f"{model} learned {tagger.n_rows_} rows with {len(tagger.tags_)} tags: {out}"
    report_tagger(tagger, message, stopped)


def learn_tables(tagger: Tagger, tables: Iterator[Table], nothing: str) -> BaseException | None:
    """Predict and learn until the end, Ctrl-C or a batch that is wrong; return what stopped it.

    If nothing was learned, raise an error with the message `nothing`.
    """
    is_new = not tagger.is_fitted
    before = 0 if is_new else tagger.n_rows_

    def learn(table: Table) -> tuple[int, str]:
        nonlocal is_new
        tagger.prequential_fit(table)
        if is_new and tagger.is_fitted:
            _say_columns(tagger)
            is_new = False
        return table.n_rows, quality_text(tagger.quality_) if tagger.is_fitted else ""

    rows, stopped = learn_batches(tables, learn)
    check_learned(tagger.is_fitted and tagger.n_rows_ > before, stopped, nothing)
    if skipped := rows - (tagger.n_rows_ - before):
        say(f"Skipped {skipped} row{'s' if skipped > 1 else ''} without tags.")
    return stopped


def report_tagger(tagger: Tagger, message: str, stopped: BaseException | None) -> None:
    """Print a message, and how well tags were predicted; if the training was stopped, end the command with it."""
    if stopped is not None:
        end_early(stopped, message)
    say(message)
    quality = quality_text(tagger.quality_)
    if not quality:
        return
    say(f"Prequential quality ({tagger.quality_['rows']} rows): {quality}.")
    tested = [(tag, counts) for tag, counts in tagger.tags_.items() if counts.tested >= _MIN_TESTED]
    best_first = sorted(tested, key=lambda pair: (-pair[1].f1(), pair[0]))
    good = [pair for pair in best_first if pair[1].f1() >= _GOOD_F1]
    if good:
        say(f"Predicted well: {_tag_list(good[:_MAX_LISTED])}.")
    if others := best_first[len(good) :]:
        say(f"Not predicted well: {_tag_list(others[::-1][:_MAX_LISTED])}.")


def quality_text(quality: dict[str, float]) -> str:
    """Return the quality of a tagger in words, nothing if no row was tested."""
    if not quality["rows"]:
        return ""
    return f"example F1 {quality['example_f1']:.3f}, micro F1 {quality['micro_f1']:.3f}"


def _tag_list(pairs: Iterable[tuple[str, TagCounts]]) -> str:
    return ", ".join(f"{tag} (F1 {counts.f1():.2f})" for tag, counts in pairs)


def _say_columns(tagger: Tagger) -> None:
    """Print the kind of each column."""
    tags, what = [tagger.tags] if isinstance(tagger.tags, str) else list(tagger.tags or []), "tags"
    if isinstance(tagger.tags, str) and tagger.separator_ is not None:
        what += f", separated by {'spaces' if tagger.separator_ == ' ' else repr(tagger.separator_)}"
    kinds = {column.name: str(column) for column in tagger.columns_}
    width = min(max(map(len, [*kinds, *tags])), 40)
    for name, kind in (kinds | dict.fromkeys(tags[:_MAX_LISTED], what)).items():
        say(f"{name:<{width}}  {kind}")
