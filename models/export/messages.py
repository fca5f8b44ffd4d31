"""What exporters say: errors that end them, and notes in one line."""

from __future__ import annotations

LONGEST = 600  # characters of a message; values of damaged files can be any length


class ExportError(Exception):
    """Says in one line what cannot be exported or trained.

    exit_code as in the command-line program: 4 for checkpoints that are missing or wrong, 2 for
    the command line, 7 for what cannot be written.
    """

    def __init__(self, message: str, exit_code: int = 4) -> None:
        super().__init__(message)
        self.exit_code = exit_code


def one_line(text: str) -> str:
    """The text as one line that a terminal shows as it is: names and values come from files of others."""
    if len(text) > LONGEST:
        text = f"{text[: LONGEST - 100]} ... {text[-90:]}"
    return "".join(
        c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text
    )


def note(text: str) -> None:
    """Names a choice that the exporter made, on standard output."""
    print(f"note: {one_line(text)}", flush=True)


def listed(names: list[str], most: int = 3) -> str:
    """The first names, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(name or "''" for name in names[:most]) + more
