"""lamplighter-export and python -m models.export."""

from __future__ import annotations

import signal
import sys

from .command import failed, first_line


def main(arguments: list[str] | None = None) -> int:
    """Exit code; without a list of arguments, the command line is read."""
    try:
        return start(arguments)
    except KeyboardInterrupt:  # while Torch is loaded, which takes seconds
        return failed("stopped", 130)


def start(arguments: list[str] | None) -> int:
    try:
        from . import program
    except (ImportError, MemoryError, OSError) as error:  # a limit on memory stops Torch's loading
        cause = error.__cause__ if isinstance(error.__cause__, Exception) else error
        reason = first_line(cause) or type(cause).__name__
        return failed(
            f"Torch cannot be loaded: {reason}; exporters need the packages of requirements.txt and "
            "some gigabytes of address space (ulimit -v)",
            6,
        )
    return program.main(arguments)


if __name__ == "__main__":
    for number in (signal.SIGTERM, signal.SIGHUP):  # half-written folders go away
        signal.signal(number, lambda number, _: sys.exit(128 + number))
    sys.exit(main())
