#!/usr/bin/env python3
"""Renders the tables of BENCHMARKS.md from the measurements in scripts/results.

    scripts/render_benchmarks.py              # writes the tables into their pages
    scripts/render_benchmarks.py --check      # exit 1 if a table is stale; one line names it
    scripts/render_benchmarks.py --show FILE  # prints all rows of one run

A page has `<!-- table: NAME -->` and `<!-- end -->`. benchmark_tables.json says what the table between them is:

    rows     list of {"file": RUN, "where": {COLUMN: VALUE or LIST}, "set": {COLUMN: VALUE}}: where selects rows of
             scripts/results/RUN.json, set adds columns to them
    index    true, instead of rows: one row for each run
    join     list of {"file": RUN, "on": [COLUMNS], "take": [COLUMNS], "where": ...}: takes columns from the rows of
             another run that are equal in COLUMNS
    sort     column, with "-" for descending; the default is the order of the files
    group    columns: rows that are equal in them become one line of the table
    columns  {HEAD: CELL}; CELL is a format string of Python, "A | B" uses B where A has no value. With "pivot": COLUMN
             a cell may be [VALUE, CELL]: CELL of the row in the group that has this value in COLUMN

A run is an object with title, machine, instructions, date, versions, command, note, columns and rows, or a file of
`lamplighter bench --export-json`, to which title, date, instructions, command and note may be added.
"""

from __future__ import annotations

import argparse
import json
import re
import string
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "scripts" / "results"
TABLES = ROOT / "scripts" / "benchmark_tables.json"
PAGES = ("BENCHMARKS.md", "scripts/results/README.md")
MARKED = re.compile(r"<!-- table: (\S+) -->\n(.*?)<!-- end -->", re.DOTALL)
Row = dict[str, Any]


class Fault(Exception):
    """A file that cannot be rendered; one line."""


@dataclass
class Run:
    about: Row  # of the whole run: title, machine, command, threads, ...
    rows: list[Row]


def read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise Fault(f"{shown(path)}: {error}") from error


def shown(path: Path) -> str:
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else str(path)


def method_key(value: Any) -> Any:
    """Options of a method in a fixed order, so that two spellings are equal."""
    if not isinstance(value, str):
        return value
    name, *options = value.split(":")
    return ":".join([name, *sorted(options)])


def ends(interval: Row | None) -> list[float] | None:
    """None where there is no interval: one image only, or `ar` over itself."""
    if interval is None or interval.get("low") is None or interval["low"] == interval["high"]:
        return None
    return [interval["low"], interval["high"]]


def export_row(method: Row) -> Row:
    """A row of `lamplighter bench --export-json` in the names of the other runs; latency is of one image."""
    images = method.get("batch_size", 1)
    ratio = method.get("ratio")  # of --synthetic: cycle over the step of ar
    row = {
        "method": method["method"],
        "lossless": method.get("lossless"),
        "batch_size": images,
        "rows": method.get("rows"),
        "share_kept": method.get("share_kept"),
        "cycle_ms": method.get("cycle_ms"),
        "kernels": method.get("kernels"),
        "floor_ms": method.get("floor_ms"),
        "joules": method.get("joules_per_image"),
        "memory_gib": method["peak_bytes"] / 2**30 if method.get("peak_bytes") else None,
        "over_step": ratio["mean"] if ratio else None,
        "over_step_interval": ends(ratio),
    }
    names = {
        "tau": "acceptance_length",
        "S": "step_compression",
        "speedup": "speedup",
        "latency_ms": "mean_latency_ms",
    }
    for name, source in names.items():
        row[name] = method[source]["mean"] if method.get(source, {}).get("count") else None
    row["latency_ms"] = row["latency_ms"] / images if row["latency_ms"] else None
    row["speedup_interval"] = ends(method.get("speedup"))
    row |= {f"{stage}_ms": ms for stage, ms in (method.get("stage_ms") or {}).items()}
    return row


def export_about(data: Row) -> Row:
    environment = data.get("environment", {})
    methods = list(dict.fromkeys(method["method"] for method in data["methods"]))
    flags = {"-m": "model", "--device": "device", "--dtype": "dtype", "-t": "threads"}
    flags |= {"--limit": "images", "--repeats": "repeats", "--warmup": "warmup"}
    words = [f"{flag} {data[key]}" for flag, key in flags.items() if data.get(key) is not None]
    command = " ".join(["build/lamplighter bench", *words, "--methods", ",".join(methods)])
    return {
        "title": f"bench of {data.get('model')}",
        "machine": environment.get("gpu") or environment.get("cpu"),
        "versions": {"lamplighter": data.get("version"), "torch": environment.get("torch")},
        "command": command.replace("-m synthetic ", "--synthetic "),
        "note": "Other programs ran on the machine." if environment.get("busy") else "",
    }


def read_run(path: Path) -> Run:
    data = read_json(path)
    tables = ("columns", "rows", "methods", "samples")
    try:
        about = {key: value for key, value in data.items() if key not in tables}
        if "methods" in data:
            about = export_about(data) | about
            rows = [export_row(method) for method in data["methods"]]
        else:
            rows = [dict(zip(data["columns"], row, strict=True)) for row in data["rows"]]
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        expected = (
            "an object with columns and rows of as many values, or a file of bench --export-json"
        )
        raise Fault(f"{shown(path)}: {error}; expected {expected}") from error
    if not rows:
        raise Fault(f"{shown(path)}: no rows")
    return Run({**about, "file": path.stem}, rows)


def results() -> dict[str, Run]:
    return {path.stem: read_run(path) for path in sorted(RESULTS.glob("*.json"))}


def wanted(value: Any) -> list[Any]:
    return [method_key(one) for one in (value if isinstance(value, list) else [value])]


def matches(row: Row, where: Row) -> bool:
    return all(method_key(row.get(column)) in wanted(value) for column, value in where.items())


def run_named(runs: dict[str, Run], name: str) -> Run:
    if name not in runs:
        raise Fault(f"{shown(TABLES)}: {name}: no file scripts/results/{name}.json")
    return runs[name]


def selected(spec: Row, runs: dict[str, Run]) -> list[Row]:
    """The rows of a table: own columns, what is said of their run, joined columns."""
    if spec.get("index"):
        return [{**run.about, "count": len(run.rows)} for run in runs.values()]
    rows = []
    for source in spec["rows"]:
        run, where = run_named(runs, source["file"]), source.get("where", {})
        found = [row for row in run.rows if matches({**run.about, **row}, where)]
        for column, value in where.items():
            known = [method_key({**run.about, **row}.get(column)) for row in found]
            if unknown := [one for one in wanted(value) if one not in known]:
                raise Fault(
                    f"{shown(TABLES)}: no row of {source['file']} has {column}: {unknown[0]}"
                )
        rows += [{**run.about, **row, **source.get("set", {})} for row in found]
    for row in rows:
        lossless, method = row.get("lossless"), row.get("method")
        row["kind"] = None if lossless is None else "lossless" if lossless else "lossy"
        row["as_ar"] = "as `ar`" if lossless and method != "ar" else None
        for join in spec.get("join", []):
            where = {column: row.get(column) for column in join["on"]} | join.get("where", {})
            joined = run_named(runs, join["file"])
            for other in joined.rows:
                if matches({**joined.about, **other}, where):
                    row |= {column: other.get(column) for column in join["take"]}
    return rows


def field_names(cell: str) -> set[str]:
    return {re.split(r"[.\[]", name)[0] for _, name, _, _ in string.Formatter().parse(cell) if name}


def fill(cell: str, row: Row) -> str:
    for choice in cell.split(" | "):
        if all(row.get(name) is not None for name in field_names(choice)):
            return choice.format_map(row)
    return ""


def pick(cell: str | list[Any], rows: list[Row], pivot: str | None) -> str:
    if isinstance(cell, str):
        return fill(cell, rows[0])
    value, inner = cell
    return next(
        (fill(inner, row) for row in rows if method_key(row.get(pivot)) == method_key(value)), ""
    )


def render(name: str, spec: Row, runs: dict[str, Run]) -> str:
    rows = selected(spec, runs)
    columns: dict[str, str | list[Any]] = spec["columns"]
    for head, cell in columns.items():
        for field in field_names(cell if isinstance(cell, str) else cell[1]):
            if all(row.get(field) is None for row in rows):
                raise Fault(f'{shown(TABLES)}: {name}: {head}: no row has "{field}"')
    if sort := spec.get("sort"):
        column = sort.removeprefix("-")
        known = [row for row in rows if row.get(column) is not None]
        known.sort(key=lambda row: row[column], reverse=sort != column)
        rows = known + [row for row in rows if row.get(column) is None]
    groups: dict[Any, list[Row]] = {}
    for number, row in enumerate(rows):
        key = tuple(str(row.get(column)) for column in spec["group"]) if "group" in spec else number
        groups.setdefault(key, []).append(row)
    lines = [list(columns), ["---"] * len(columns)]
    lines += [
        [pick(cell, group, spec.get("pivot")) for cell in columns.values()]
        for group in groups.values()
    ]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def show(run: Run) -> str:
    """All rows of a run, without columns that have no value."""
    known = [key for key in run.rows[0] if any(row.get(key) is not None for row in run.rows)]
    columns = {key: f"{{{key}}}" for key in known}
    return render("show", {"rows": [{"file": "run"}], "columns": columns}, {"run": run})


def render_page(path: Path, specs: Row, runs: dict[str, Run]) -> tuple[str, list[str], list[str]]:
    """The text of a page with its tables rendered, the names of all tables, and of those that were stale."""
    text = path.read_text(encoding="utf-8")
    names: list[str] = []
    stale: list[str] = []

    def table(match: re.Match[str]) -> str:
        name = match[1]
        if name not in specs:
            raise Fault(f"{shown(path)}: table {name}: not in {shown(TABLES)}")
        try:
            new = f"<!-- table: {name} -->\n{render(name, specs[name], runs)}<!-- end -->"
        except (KeyError, IndexError, TypeError, ValueError) as error:
            raise Fault(f"{shown(TABLES)}: {name}: {type(error).__name__}: {error}") from error
        names.append(name)
        if new != match[0]:
            stale.append(name)
        return new

    rendered = MARKED.sub(table, text)
    if text.count("<!-- table:") != len(names):
        raise Fault(f"{shown(path)}: a table has no <!-- end -->")
    return rendered, names, stale


def update(check: bool) -> list[str]:
    """Renders all tables into their pages, or with `check` only compares; returns `PAGE: TABLE` of the stale ones."""
    specs, runs = read_json(TABLES), results()
    pages = {ROOT / page: render_page(ROOT / page, specs, runs) for page in PAGES}
    if unused := set(specs) - {name for _, names, _ in pages.values() for name in names}:
        raise Fault(f"{shown(TABLES)}: on no page: {', '.join(sorted(unused))}")
    for path, (text, _, stale) in pages.items():
        if stale and not check:
            path.write_text(text, encoding="utf-8")
    return [f"{shown(path)}: {name}" for path, (_, _, stale) in pages.items() for name in stale]


def main() -> int:
    layout = argparse.RawDescriptionHelpFormatter
    words = argparse.ArgumentParser(description=__doc__, formatter_class=layout)
    words.add_argument("--check", action="store_true", help="write nothing, exit 1 if stale")
    words.add_argument("--show", type=Path, metavar="FILE", help="print all rows of one run")
    options = words.parse_args()
    try:
        if options.show:
            print(show(read_run(options.show)), end="")
            return 0
        stale = update(options.check)
    except Fault as fault:
        print(f"render_benchmarks: {fault}", file=sys.stderr)
        return 2
    if stale and options.check:
        print(f"stale: {', '.join(stale)}; run scripts/render_benchmarks.py", file=sys.stderr)
    return 1 if stale and options.check else 0


if __name__ == "__main__":
    sys.exit(main())
