#!/usr/bin/env python3
"""Says where the time of a captured cycle goes: in the layers, or in which kernels beside them.

    python3 scripts/kernel_table.py FILE --layers 36

FILE comes from scripts/kernel_times.cpp. A kernel adds the time from the end of what ran before it to its own end,
so kernels that overlap are not counted twice. Kernels that run at least once in every layer are the layers'.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path

COLUMNS = ["graph", "name", "grid", "block", "count", "mean_us", "least_us", "gap_us"]


@dataclass(frozen=True)
class Node:
    """A kernel or copy of a graph; microseconds are means over the replays."""

    graph: int
    name: str
    replays: int
    time_us: float
    gap_us: float

    @property
    def adds_us(self) -> float:
        return self.time_us + self.gap_us


def read_nodes(path: Path) -> list[Node]:
    with path.open(newline="") as file:
        table = csv.DictReader(file)
        if table.fieldnames != COLUMNS:
            raise ValueError(f"{path}: got columns {table.fieldnames}, expected {COLUMNS}")
        return [
            Node(
                int(row["graph"]),
                row["name"],
                int(row["count"]),
                float(row["mean_us"]),
                float(row["gap_us"]),
            )
            for row in table
        ]


def longest_graph(nodes: list[Node]) -> list[Node]:
    """The nodes of the graph that took the most time in all: the cycle."""
    graphs: defaultdict[int, list[Node]] = defaultdict(list)
    for node in nodes:
        if node.graph != 0:
            graphs[node.graph].append(node)
    if not graphs:
        raise ValueError("no captured graph ran")
    return max(graphs.values(), key=lambda graph: sum(n.adds_us * n.replays for n in graph))


def table(cycle: list[Node], layers: int) -> str:
    """Two tables in Markdown: the cycle's parts, then the kernels beside the layers."""
    times = Counter(node.name for node in cycle)
    beside = [node for node in cycle if times[node.name] < layers]
    whole = sum(node.adds_us for node in cycle)
    rest = sum(node.adds_us for node in beside)
    lines = [
        "| replays | kernels | cycle, us | layers, us | a layer, us | the rest, us | kernels of the rest |",
        "|---|---|---|---|---|---|---|",
        f"| {max(node.replays for node in cycle)} | {len(cycle)} | {whole:.1f} | {whole - rest:.1f} "
        f"| {(whole - rest) / layers:.2f} | {rest:.1f} | {len(beside)} |",
        "",
        "| kernel of the rest | times a cycle | adds, us | runs, us |",
        "|---|---|---|---|",
    ]
    by_name: defaultdict[str, list[Node]] = defaultdict(list)
    for node in beside:
        by_name[node.name].append(node)
    for name, group in sorted(by_name.items(), key=lambda item: -sum(n.adds_us for n in item[1])):
        adds, runs = sum(n.adds_us for n in group), sum(n.time_us for n in group)
        lines.append(f"| {name.replace('|', '/')} | {len(group)} | {adds:.1f} | {runs:.1f} |")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path, metavar="FILE")
    parser.add_argument("--layers", type=int, required=True, help="layers of the target")
    arguments = parser.parse_args()
    if arguments.layers < 1:
        parser.error(f"--layers: got {arguments.layers}, expected 1 or more")
    try:
        print(table(longest_graph(read_nodes(arguments.file)), arguments.layers))
    except (OSError, ValueError) as error:
        print(f"kernel_table: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
