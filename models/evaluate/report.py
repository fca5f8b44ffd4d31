"""The table of folders and scores, and the files it goes into."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

from .folders import Folder

Row = dict[str, Any]
DIGITS = {"S": 2, "ms": 1, "ratio": 2}


def rows(folders: list[Folder], scores: list[dict[str, float]]) -> list[Row]:
    """A row a folder. The ratio compares milliseconds an image with the folder generated with `ar` that stands
    before it, or to the first one.
    """
    baseline = next((f.ms for f in folders if f.method == "ar" and f.ms), None)
    table = []
    for folder, values in zip(folders, scores, strict=True):
        row: Row = {
            "method": folder.name,
            "images": len(folder.images),
            "failed": folder.failed,
            "missing": folder.missing,
            "S": round(folder.step_compression, 4),
            "ms": round(folder.ms, 3),
        }
        baseline = folder.ms if folder.method == "ar" else baseline
        if baseline and folder.ms:
            row["ratio"] = round(baseline / folder.ms, 4)
        table.append({**row, **values})
    return table


def columns(table: list[Row]) -> list[str]:
    """In the order of their first row; counts of images that are not there only when there are some."""
    names = list(dict.fromkeys(name for row in table for name in row))
    return [n for n in names if n not in ("failed", "missing") or any(row[n] for row in table)]


def cell(name: str, value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.{DIGITS[name]}f}" if name in DIGITS else str(value)


def lines(table: list[Row]) -> list[list[str]]:
    names = columns(table)
    return [names, *([cell(name, row.get(name)) for name in names] for row in table)]


def text_table(table: list[Row]) -> str:
    """Columns side by side, for a terminal."""
    cells = lines(table)
    widths = [max(len(line[i]) for line in cells) for i in range(len(cells[0]))]
    return "\n".join(
        "  ".join([line[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(line[1:], widths[1:]))])
        for line in cells
    )


def markdown(table: list[Row]) -> str:
    head, *body = ([text.replace("|", "\\|") for text in line] for line in lines(table))
    rule = ["---", *("--:" for _ in head[1:])]
    return "\n".join("| " + " | ".join(line) + " |" for line in (head, rule, *body)) + "\n"


def comma_separated(table: list[Row]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(
        [columns(table), *([row.get(n) for n in columns(table)] for row in table)]
    )
    return out.getvalue()


def named_scores(table: list[Row]) -> dict[str, dict[str, float]]:
    """Scores by method, as `bench --scores` reads them."""
    ours = {"method", "images", "failed", "missing", "S", "ms", "ratio"}
    return {row["method"]: {k: v for k, v in row.items() if k not in ours} for row in table}


def publish(path: Path, text: str) -> None:
    """Writes a file whole or not at all."""
    part = path.with_name(f".{path.name}.part")
    part.write_text(text, encoding="utf-8")
    part.replace(path)


def to_json(value: Any) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False) + "\n"
