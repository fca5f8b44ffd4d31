"""The Python package beside other threads, under interrupts and with several engines."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

CAPTION = "a red boat on the sea at dawn"


def test_other_threads_run_while_it_generates(engine: Any) -> None:
    counted: list[float] = []
    done = threading.Event()

    def count() -> None:
        while not done.wait(0.005):
            counted.append(time.monotonic())

    thread = threading.Thread(target=count)
    thread.start()
    start = time.monotonic()
    engine.generate(CAPTION, method="sjd")
    end = time.monotonic()
    done.set()
    thread.join()
    assert sum(start < at < end for at in counted) > 10


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Processes that a shell starts in the background ignore interrupts."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_the_engine_generates_after_an_interrupt(engine: Any) -> None:
    want = engine.generate(CAPTION, method="sjd")[0].codes
    rows = []

    def interrupt(_: int, row: int, __: np.ndarray) -> None:
        rows.append(row)
        if row == 1:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        engine.generate(CAPTION, method="sjd", on_row=interrupt)
    assert len(rows) < len(want)
    assert np.array_equal(engine.generate(CAPTION, method="sjd")[0].codes, want)


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_stops_without_any_callback(engine: Any) -> None:
    timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        timer.start()
        engine.generate([CAPTION] * 400, method="ar")
    assert time.monotonic() - start < 20


def test_two_engines_at_once(package: Any, engine: Any, demo_bundle: Path) -> None:
    other = package.TextToImage(demo_bundle, device="cpu", threads=1)
    want = engine.generate(CAPTION, method="sjd")[0].codes
    generated: dict[str, np.ndarray] = {}

    def generate_image(name: str, using: Any) -> None:
        generated[name] = using.generate(CAPTION, method="sjd")[0].codes

    threads = [
        threading.Thread(target=generate_image, args=(str(i), e))
        for i, e in enumerate((engine, other))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert np.array_equal(generated["0"], want) and np.array_equal(generated["1"], want)
