"""Says how far a long export is."""

from __future__ import annotations

import sys

WIDTH = 30


class Progress:
    """A bar on standard error if that is a terminal, else a line at every quarter on standard output."""

    def __init__(self, title: str, total: int) -> None:
        self.title, self.total, self.done = title, total, 0
        self.bar = sys.stderr.isatty()
        self.show()

    def step(self, count: int = 1) -> None:
        before, self.done = self.done, self.done + count
        quarters = [4 * done // self.total for done in (before, self.done)]
        if self.bar or quarters[0] != quarters[1]:
            self.show()

    def show(self) -> None:
        percent = 100 * self.done // self.total
        if self.bar:
            filled = WIDTH * self.done // self.total
            end = "\n" if self.done == self.total else ""
            line = f"\r{self.title} [{'#' * filled:<{WIDTH}}] {percent:3d} %"
            print(line, end=end, file=sys.stderr, flush=True)
        else:
            print(f"{self.title}: {percent} %", flush=True)
