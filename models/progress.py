"""How far long work is: a bar on a terminal, and the time that is left."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping
from typing import Any

WIDTH = 30
REFRESH = 0.2  # seconds between two states of a bar


def duration(seconds: float) -> str:
    """ "45 s", "12:30 min" or "3:05 h"."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    unit, size = ("min", 1) if whole < 3600 else ("h", 60)
    return f"{whole // 60 // size}:{whole // size % 60:02d} {unit}"


class Progress:
    """A bar on standard error if that is a terminal. Lines of a log are printed above it, with the time that
    is left by the pace of this run.
    """

    def __init__(self, title: str, total: float, done: float = 0.0) -> None:
        """total: the work, in any unit; done: what earlier runs did."""
        self.title, self.total, self.first, self.done = title, total, done, done
        self.begun, self.shown = time.monotonic(), 0.0
        self.bar = sys.stderr.isatty()

    def left(self) -> float | None:
        """Seconds; None at the end, and before the pace is known."""
        if not self.first < self.done < self.total:
            return None
        pace = (time.monotonic() - self.begun) / (self.done - self.first)
        return (self.total - self.done) * pace

    def show(self, done: float) -> None:
        """Takes what is done, and refreshes the bar now and then."""
        self.done = min(done, self.total)
        now = time.monotonic()
        if self.bar and (now - self.shown > REFRESH or self.done == self.total):
            self.shown = now
            self.refresh()

    def refresh(self) -> None:
        share = self.done / self.total if self.total else 1.0
        bar = f"{'#' * int(WIDTH * share):<{WIDTH}}"
        line = f"\r\x1b[K{self.title} [{bar}] {int(100 * share):3d} %{self.words()}"
        print(line, end="\n" if share == 1 else "", file=sys.stderr, flush=True)

    def words(self) -> str:
        left = self.left()
        return "" if left is None else f", {duration(left)} left"

    def log(self, line: str) -> None:
        """Prints a line, with the time that is left at its end."""
        self.write(line + self.words())

    def record(self, result: Mapping[str, Any]) -> None:
        """Prints a line of JSON, with the minutes that are left."""
        left = self.left()
        more = {} if left is None else {"minutes left": round(left / 60, 1)}
        self.write(json.dumps({**result, **more}))

    def write(self, line: str) -> None:
        if self.bar and self.done < self.total:  # the line takes the place of the bar
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
        print(line, flush=True)


class Steps(Progress):
    """Work of a known number of steps. Where there is no bar, every quarter is a line."""

    def __init__(self, title: str, total: int) -> None:
        super().__init__(title, total)
        self.report()

    def step(self, count: int = 1) -> None:
        before, self.done = self.done, self.done + count
        if self.bar or 4 * before // self.total != 4 * self.done // self.total:
            self.report()

    def report(self) -> None:
        if self.bar:
            self.refresh()
        else:
            self.log(f"{self.title}: {int(100 * self.done // self.total)} %")
