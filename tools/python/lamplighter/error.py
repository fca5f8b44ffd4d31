"""What the package raises."""

from __future__ import annotations

from . import _native

USAGE = 2  # exit code for wrong flags


class Error(Exception):
    """A failure of the engine, in one line; `exit_code` is that of the program (2 usage, 3 input, 4 bundle, ...)."""

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code


_native.error_class = Error
