"""How far long work says it is: bars on a terminal, and the time that is left in logs."""

from __future__ import annotations

import io
import json
import sys

import pytest

from models import progress
from models.progress import Progress, Steps, duration


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time, which tests set."""
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return now


def begin_terminal(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """Makes standard error a terminal; in a test, because pytest sets it before each."""
    stream = io.StringIO()
    monkeypatch.setattr(stream, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stderr", stream)
    return stream


def test_durations() -> None:
    assert [duration(seconds) for seconds in (4.6, 59.6, 750, 3599.9, 11_100)] == [
        "5 s", "1:00 min", "12:30 min", "1:00 h", "3:05 h",
    ]  # fmt: skip


def test_lines_say_what_is_left(clock: list[float], capsys: pytest.CaptureFixture[str]) -> None:
    """By the pace of this run: earlier runs did a quarter."""
    work = Progress("training", 40, 10)
    work.log("step 1")
    clock[0] += 60
    work.show(20)
    work.log("step 2")
    work.record({"step": 3})
    work.show(41)
    work.log("step 4")
    work.record({"step": 5})
    lines = capsys.readouterr()
    assert lines.err == ""
    first, second, third, fourth, fifth = lines.out.splitlines()
    assert (first, second, fourth) == ("step 1", "step 2, 2:00 min left", "step 4")
    assert json.loads(third) == {"step": 3, "minutes left": 2.0}
    assert json.loads(fifth) == {"step": 5}


def test_a_bar_stands_below_the_lines(
    clock: list[float], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    terminal = begin_terminal(monkeypatch)
    work = Progress("training", 3)
    clock[0] += 10
    for done in (1, 1.1, 1.2):  # the bar changes now and then
        work.show(done)
    work.log("step 7")
    work.show(3)
    assert terminal.getvalue() == (
        f"\r\x1b[Ktraining [{'#' * 10}{' ' * 20}]  33 %, 20 s left"
        f"\r\x1b[K\r\x1b[Ktraining [{'#' * 30}] 100 %\n"
    )
    assert capsys.readouterr().out == "step 7, 15 s left\n"


def test_steps_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = begin_terminal(monkeypatch)
    work = Steps("reading", 3)
    for _ in range(3):
        work.step()
    shown = terminal.getvalue()
    assert shown.count("\r") == 4 and shown.endswith(f"reading [{'#' * 30}] 100 %\n")
    assert f"[{'#' * 10}{' ' * 20}]  33 %" in shown


def test_quarters_are_lines(clock: list[float], capsys: pytest.CaptureFixture[str]) -> None:
    work = Steps("reading", 8)
    for _ in range(8):
        clock[0] += 1
        work.step()
    assert capsys.readouterr().out.splitlines() == [
        "reading: 0 %", "reading: 25 %, 6 s left", "reading: 50 %, 4 s left",
        "reading: 75 %, 2 s left", "reading: 100 %",
    ]  # fmt: skip
