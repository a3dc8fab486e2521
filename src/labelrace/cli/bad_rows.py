"""``--skip-bad-rows``: rows that cannot be read or learned are left out, counted and listed."""

from __future__ import annotations

from labelrace.cli.messages import number_of, say, sentence

_MAX_LISTED = 20


class BadRows:
    """Counts the rows that are left out, and keeps the errors of the first ones."""

    def __init__(self) -> None:
        self.n_rows = 0
        self._listed = list[str]()

    def __call__(self, error: Exception) -> None:
        """Note an error of a row."""
        self.n_rows += 1
        if len(self._listed) < _MAX_LISTED:
            self._listed.append(sentence(error))

    def tell(self) -> None:
        """Print on standard error the number of rows left out, and their errors."""
        if not self.n_rows:
            return
        say(f"Skipped {number_of(self.n_rows, 'bad row')}:", err=True)
        for line in self._listed:
            say(f"  {line}", err=True)
        if more := self.n_rows - len(self._listed):
            say(f"  and {more} more.", err=True)
