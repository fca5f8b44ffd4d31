"""What a server costs while something happens to it."""

from __future__ import annotations

import math
import resource
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from tests.e2e.serve.client import Server


def raise_descriptors(wanted: int) -> bool:
    """Whether this process may have this number of descriptors."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(wanted, hard), hard))
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0] >= wanted


def status_of(server: Server, name: str) -> int:
    """A number of the process's status: VmRSS in kB, Threads."""
    text = Path(f"/proc/{server.process.pid}/status").read_text()
    return int(next(line for line in text.splitlines() if line.startswith(name)).split()[1])


def resident(server: Server) -> float:
    """Resident megabytes."""
    return status_of(server, "VmRSS") / 1000


@dataclass
class Watch:
    """Looks at a server on a thread of its own while something happens."""

    server: Server
    _stop: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        raise NotImplementedError


@dataclass
class Memory(Watch):
    """Resident megabytes."""

    before: float = 0
    most: float = 0

    def __enter__(self) -> Self:
        self.before = self.most = resident(self.server)
        return super().__enter__()

    def _watch(self) -> None:
        while not self._stop.wait(0.005):
            self.most = max(self.most, resident(self.server))


@dataclass
class Health(Watch):
    """The slowest answer of /health, in seconds. Each comes on a connection of its own."""

    slowest: float = 0

    def _watch(self) -> None:
        while True:
            started = time.monotonic()
            try:
                answers = self.server.get("/health").status == 200
            except OSError:
                answers = False
            self.slowest = max(self.slowest, time.monotonic() - started if answers else math.inf)
            if self._stop.wait(0.05):
                return
