"""`fit`: a model or a tagger learned in shares, merged in a tree, round after round.

The pieces of a source, in their order, are cut into rounds and each round into shares. All shares of a round start from
the same model; what they gain is added in a tree, in their order, and joined with the start to the model that the next
round starts from. A share that is alone in its round is that model. All of that is fixed by the data and by the
parameters, and every task is a function of its arguments: two runs give the same bits, on one worker or on a thousand,
whichever of them die.
"""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeAlias

from labelrace.base import parameters
from labelrace.distributed import worker_tasks
from labelrace.distributed.cluster import LostError, connect, engine, losses, send, wait_for
from labelrace.distributed.sources import DelayedPiece, FilePiece, as_delayed_pieces, pieces_of
from labelrace.distributed.worker_tasks import Settings, Start
from labelrace.exceptions import DistributedError
from labelrace.streams.column_matching import Features, features_of, shared_features, source_of
from labelrace.streams.dataset import Stream, nominal_mask, row_count
from labelrace.tables import Tagger

# Rounds of the default, and shares of a round: see the curve in docs/in-depth/scale.md.
ROUNDS = 24
_FEWEST_SHARES, _MOST_SHARES = 8, 64
# The first rounds have an eighth, a quarter and half of the pieces of the others: a young model gains most from others.
_FIRST_ROUNDS = (1, 2, 4)
_OTHER_ROUNDS = 8
# Rows set aside in a round.
_HELD_OUT = 200
# Minimum number of rows of a share, for models that are not sums: fewer are learned less exactly than together.
_FEWEST_ROWS = 250
# The first rows are among this many pieces, or more if these have fewer rows.
_FIRST_PIECES = 16
_FIRST_ROWS = 1000
# Rounds that start from one another's models without waiting for these to be here.
_IN_A_ROW = 8
# Shares that one task adds: fewer make more tasks, more make workers without a task wait longer.
_ADDED = 4


class Progress(NamedTuple):
    """How far `fit` is.

    Attributes
    ----------
    round, rounds : int
        Rounds that are joined, and all of them.
    rows : int
        Rows learned.
    pieces, all_pieces : int
        Pieces learned, and all of them.
    example_f1 : float
        Mean F1 of rows that were predicted before they were learned; NaN before the first round.
    """

    round: int
    rounds: int
    rows: int
    pieces: int
    all_pieces: int
    example_f1: float


Report: TypeAlias = Callable[[Progress], object]


def plan(n_pieces: int, rounds: int, shares: int | None, n_rows: int | None = None) -> list[list[range]]:
    """Cut pieces into rounds of shares: a list of rounds, each a list of shares, each a range of pieces.

    The first rounds are shorter than the others. Where there are not enough pieces for all rounds, there are fewer of
    them: shares come first. Where there are not enough of ``n_rows``, if that is given, there are fewer shares, and
    then fewer rounds: few rows are learned quickly, and the better for it the less they are shared.

    Examples
    --------
    >>> plan(4, rounds=2, shares=2)
    [[range(0, 1)], [range(1, 2), range(2, 4)]]
    >>> [len(each) for each in plan(1000, rounds=16, shares=None)]
    [9, 18, 36, 62, 62, 62, 62, 62, 62, 62, 62, 62, 62, 62, 62, 62]
    >>> [len(each) for each in plan(30, rounds=4, shares=8, n_rows=3000)]
    [2, 3, 3, 3]
    """
    wanted = min(max(n_pieces // rounds, _FEWEST_SHARES), _MOST_SHARES) if shares is None else shares
    enough = n_pieces if n_rows is None else n_rows // _FEWEST_ROWS
    n_shares = max(1, min(wanted, n_pieces, enough if n_rows is None else enough // rounds))
    n_rounds = max(1, min(rounds, n_pieces // n_shares, enough))
    weights = [*_FIRST_ROUNDS, *[_OTHER_ROUNDS] * n_rounds][:n_rounds]
    ends = [n_pieces * total // sum(weights) for total in itertools.accumulate(weights)]
    planned = []
    for first, last in itertools.pairwise([0, *ends]):
        bounds = [first + (last - first) * share // n_shares for share in range(n_shares + 1)]
        planned.append([range(a, b) for a, b in itertools.pairwise(bounds) if b > a])
    return [each for each in planned if each]


def fit(
    model: Any,
    source: Any,
    *,
    client: Any = None,
    workers: int | None = None,
    scheduler: str | None = None,
    rounds: int = ROUNDS,
    shares: int | None = None,
    batch_size: int = 500,
    labels: Any = None,
    on_progress: Report | bool | None = None,
) -> Any:
    """Learn a source in shares, on a cluster or on the processors of this machine.

    Models that are sums (naive Bayes and ridge RACE, binary relevance, chains, constants, the compression methods) are
    the models that learned all rows, to round-off. The default, `LabelRaceClassifier`, comes close: see
    docs/in-depth/scale.md. The result does not depend on the number of workers, nor on which of them died.

    Parameters
    ----------
    model : classifier or Tagger
        Continues from what it has learned, if anything.
    source : path, pattern or list of them; Dask DataFrame or Bag; list of delayed or of batches
        For a `Tagger` tables that have the column of tags, for a classifier data files or pairs ``(X, y)``. Parquet
        files with tags are read by row groups; other files are cut by rows where they are few, for which their rows are
        counted first. Columns of data files are matched by name, numbered features by number and nominal values by
        text, and nominal columns are learned as such unless the model's ``categorical_features`` says otherwise.
    client : distributed.Client, default=None
        The cluster; by default processes on this machine.
    workers : int, default=None
        How many processes, where no client is given; by default as many as there are processors.
    scheduler : str, default=None
        The address of a scheduler, such as ``tcp://10.0.0.1:8786``, instead of a client.
    rounds : int, default=24
        How often shares are merged and start again from the merged model: for the default, more rounds come nearer to
        one pass over all rows.
    shares : int, default=None
        Maximum number of shares of a round; by default 8 to 64, by the number of pieces. No more workers than these are
        busy. Of models that are not sums a share has 250 rows or more, where the number of rows is known beforehand.
    batch_size : int, default=500
        Rows learned at once.
    labels : label source, default=None
        What the labels of data files are, as for `labelrace.load_dataset`.
    on_progress : callable or bool, default=None
        Called with a `Progress` after every round; True shows a bar in a terminal, and nothing in a notebook.

    Returns
    -------
    model
        The same one. It is assigned after every round: whatever ends the call, the model holds what was merged so far.

    Raises
    ------
    MergeError
        If the model cannot be learned in shares.
    DistributedError
        If workers cannot be used, or were lost.
    DataFormatError
        If a file cannot be read, or has other columns than the first. It names the file.

    Examples
    --------
    >>> import labelrace
    >>> from labelrace.distributed import fit
    >>> tagger = labelrace.Tagger("tags", random_state=0)
    >>> fit(tagger, "tickets-*.parquet", workers=4)  # doctest: +SKIP
    """
    engine()
    parameters.check_whole("rounds", rounds, 1)
    parameters.check_whole("batch_size", batch_size, 1)
    if shares is not None:
        parameters.check_whole("shares", shares, 1)
    opened, as_tables = dict[str, Stream](), isinstance(model, Tagger)
    pieces = pieces_of(source, as_tables=as_tables, labels=labels, batch_size=batch_size, opened=opened)
    features = _file_features(model, pieces, labels, opened)
    _fix_seed(model)
    _tell_nominal(model, features)
    settings = Settings(batch_size, labels, _HELD_OUT)
    with connect(client, workers=workers, scheduler=scheduler) as connection, progress_reporter(on_progress) as report:
        _Rounds(connection, pieces, settings, features).run(model, rounds, shares, report)
    return model


def _file_features(model: Any, pieces: list[Any], labels: Any, opened: dict[str, Stream]) -> Features | None:
    """Return the features of data files, in the order of the model's if it has any; None for other sources."""
    if isinstance(model, Tagger) or not isinstance(pieces[0], FilePiece):
        return None
    paths = dict.fromkeys(piece.path for piece in pieces)
    return shared_features(paths, labels, features_of(model) if model.is_fitted else None, opened)


def _tell_nominal(model: Any, features: Features | None) -> None:
    """Tell a new model which columns of files are nominal, if it accepts these and they were not given."""
    takes = not model.is_fitted and model.get_params().get("categorical_features", "") is None
    if takes and features is not None and features.texts:
        texts = {column: tuple(values) for column, values in features.texts.items()}
        model.set_params(categorical_features=nominal_mask(features.n_features, texts))


def _fix_seed(model: Any) -> None:
    """Draw a seed where none is given: what is drawn must be the same when a task is repeated."""
    if model.is_fitted or not hasattr(model, "random_state") or isinstance(model.random_state, int):
        return
    model.set_params(random_state=parameters.draw_seed(model.random_state) % 2**31)


class _Submitted(NamedTuple):
    """A round that is being learned: its shares, and the joint model that they become."""

    shares: list[Any]
    joint: Any


class _Rounds:
    """The rounds of one `fit`: what is submitted, and what has come back."""

    def __init__(self, client: Any, pieces: list[Any], settings: Settings, features: Features | None) -> None:
        self._client = client
        # Sent once, as there may be very many names.
        self._sent_features = None if features is None else send(client, features)
        self._source = None if features is None or features.names is None else source_of(features)
        # A piece is learned once, so that the worker that learns it may as well compute it.
        self._pieces = as_delayed_pieces(pieces)
        self._settings = settings
        self._plan = list[list[range]]()
        # What tasks do, by their keys, for errors.
        self._names = dict[str, str]()

    def run(self, model: Any, rounds: int, shares: int | None, report: Report) -> None:
        """Learn all rounds; whatever happens, the model is the last that was joined."""
        killed, lost = losses()
        done, rows = 0, 0
        try:
            for joint in self._joint_models(model, rounds, shares):
                _take_over(model, joint.model)
                if self._source is not None:
                    model.source_ = self._source
                n_pieces, rows, done = self._plan[done][-1].stop, joint.rows, done + 1
                quality = joint.sum_f1 / joint.n_tested if joint.n_tested else float("nan")
                report(Progress(done, len(self._plan), rows, n_pieces, len(self._pieces), quality))
        except DistributedError as error:
            raise DistributedError(f"Round {done + 1} failed: {error} {_saved(done, rows)}") from None
        except killed as error:
            raise DistributedError(
                f"Round {done + 1} failed: workers died again and again with {self._task_of(error)}, most often "
                f"because they ran out of memory. {_saved(done, rows)} Give smaller pieces (more files or row groups), "
                "or fewer workers on a machine."
            ) from None
        except lost as error:
            raise DistributedError(
                f"The scheduler was lost in round {done + 1} ({type(error).__name__}). {_saved(done, rows)}"
            ) from None

    def _joint_models(self, model: Any, rounds: int, shares: int | None) -> Iterator[Start]:
        """Plan the rounds, and yield the joint model of each."""
        start = self._begin(model)
        n_rows = _known_rows(self._pieces)
        if n_rows and wait_for(self._client, self._client.submit(worker_tasks.is_exact, start, pure=False)):
            n_rows = None
        self._plan = plan(len(self._pieces), rounds, shares, n_rows)
        here, needed, ahead = None, None, None
        for number, ranges in enumerate(self._plan):
            now = ahead or self._submit(start, ranges)
            while True:
                ahead = self._submit_next(now, number + 1)
                try:
                    joint = wait_for(self._client, now.joint, now.shares, needed)
                    break
                except LostError:
                    # All who had the start have died: the copy that is here is sent.
                    now, needed = self._submit(send(self._client, here), ranges), None
            yield joint
            here, needed = joint, now.joint if ahead else None
            if number + 1 < len(self._plan):
                start = needed or send(self._client, here)

    def _begin(self, model: Any) -> Any:
        """Submit the start: the first rows, as many as the model needs."""
        n_first, n_rows = _FIRST_PIECES, 0
        for number, piece in enumerate(self._pieces):
            # What is read when it is needed may be many pieces, and small batches must be.
            if hasattr(piece, "dask") or isinstance(piece, DelayedPiece) or n_rows >= _FIRST_ROWS:
                break
            n_first, n_rows = max(n_first, number + 1), n_rows + _n_rows(piece)
        numbers = range(min(len(self._pieces), n_first))
        given = model, self._computed(numbers), self._settings, self._sent_features
        start = self._client.submit(worker_tasks.begin, *given, pure=False)
        self._names[start.key] = f"the first rows ({self._span(numbers)})"
        return start

    def _submit_next(self, now: _Submitted, number: int) -> _Submitted | None:
        """Submit the next round before this one is done: workers go on while the joint model is brought here.

        The scheduler remembers what a round came from until one starts from a model that was sent. So not all rounds
        may go on like this, and none that has rows with its tasks, or that are computed before they are learned.
        """
        are_read = all(isinstance(piece, (FilePiece, DelayedPiece)) for piece in self._pieces)
        if number == len(self._plan) or not are_read or number % _IN_A_ROW == 0:
            return None
        return self._submit(now.joint, self._plan[number])

    def _submit(self, start: Any, ranges: list[range]) -> _Submitted:
        """Submit a round: shares, the tree, and the joint model."""
        n_held_out = max(1, -(-self._settings.n_held_out // len(ranges)))
        settings = self._settings._replace(n_held_out=n_held_out, is_alone=len(ranges) == 1)
        # Names of its own: Dask lets tasks wait for a free worker only where those of a name need few others.
        name, submit = uuid.uuid4().hex, self._client.submit
        shares = [
            submit(
                worker_tasks.learn,
                *(start, numbers.start, self._computed(numbers), settings, self._sent_features),
                key=(f"learn-{name}", number),
                pure=False,
            )
            for number, numbers in enumerate(ranges)
        ]
        self._names |= {
            str(share.key): f"share {number} of {len(ranges)} ({self._span(numbers)})"
            for number, (share, numbers) in enumerate(zip(shares, ranges, strict=True), start=1)
        }
        level = shares
        while len(level) > _ADDED:
            groups = [level[first : first + _ADDED] for first in range(0, len(level), _ADDED)]
            level = [submit(worker_tasks.add, *group, pure=False) for group in groups]
        return _Submitted(shares, submit(worker_tasks.join, start, *level, key=(f"join-{name}", 0), pure=False))

    def _computed(self, numbers: range) -> list[Any]:
        """Return pieces as workers take them: what is delayed is computed where it is needed."""
        computed = []
        for number in numbers:
            piece = self._pieces[number]
            if hasattr(piece, "dask"):
                piece = self._client.compute(piece)
                self._names[piece.key] = f"piece {number} of the source"
            computed.append(piece)
        return computed

    def _span(self, numbers: range) -> str:
        """Name the pieces of a share."""
        first, last = (self._pieces[number] for number in (numbers[0], numbers[-1]))
        if not isinstance(first, FilePiece):
            return f"pieces {numbers[0]} to {numbers[-1]} of the source"
        return str(first) if first == last else f"{first} to {last}"

    def _task_of(self, error: BaseException) -> str:
        """Return the description of a task that failed."""
        [key, *_] = error.args or [""]
        return self._names.get(str(key), "a task that merges shares")


def _saved(done: int, rows: int) -> str:
    """Say what the model holds after some rounds."""
    if not done:
        return "Nothing was merged yet."
    return f"The model holds the {rows} rows of {done} rounds that were merged before."


def _n_rows(piece: Any) -> int:
    """Count the rows of a batch in memory, or of a file's piece; 0 if that is not known yet."""
    if isinstance(piece, FilePiece):
        return piece.n_rows
    if hasattr(piece, "dask") or isinstance(piece, DelayedPiece):
        return 0
    return row_count(piece[0] if isinstance(piece, tuple) else piece)


def _known_rows(pieces: list[Any]) -> int | None:
    """Count the rows of all pieces, if those of each are known."""
    counts = [_n_rows(piece) for piece in pieces]
    return sum(counts) if all(counts) else None


def _take_over(model: Any, learned: Any) -> None:
    """Give the user's model the state of a joint one; its parameters stay its own."""
    for name, value in vars(learned).items():
        if name.startswith("_"):
            model.__dict__[name] = value


@contextmanager
def progress_reporter(on_progress: Report | bool | None) -> Iterator[Report]:
    """Yield what is called after every round: the user's function, or one that draws a bar if asked for."""
    if callable(on_progress):
        yield on_progress
        return
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    screen = Console(stderr=True)
    is_shown = on_progress is True and screen.is_terminal
    columns = (BarColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Bar(*columns, console=screen, transient=True, disable=not is_shown) as bar:
        task = bar.add_task("starting", total=None)

        def show(progress: Progress) -> None:
            text = f"{progress.rows} rows, example F1 {progress.example_f1:.3f}"
            bar.update(task, completed=progress.pieces, total=progress.all_pieces, description=text)

        yield show
