"""Lines of the generated tables."""

from __future__ import annotations

from collections.abc import Iterable


def wrap(items: Iterable[str]) -> str:
    """Joins items with commas, in lines of at most 110 characters."""
    lines, line = [], "   "
    for item in items:
        if len(line) + len(item) + 2 > 110:
            lines.append(line)
            line = "   "
        line += f" {item},"
    return "\n".join([*lines, line])
