"""Generates the rows of a paper's table, one folder each, and scores them. A second run continues the first.

The scripts in this folder hold the papers' settings. An environment variable sets the flag of its name (BUNDLE=DIR is
--bundle DIR). Flags after -- go to scripts/evaluate.py: metrics, reference images, weights.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import struct
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
DEMO_CAPTIONS = 100
UNSUPPORTED = (2, 4)  # exit codes for settings that the bundle does not support


@dataclass(frozen=True)
class Row:
    name: str
    flags: list[str]

    @property
    def folder(self) -> str:
        """ "LANTERN++ k=10 lambda=3" is lantern++-k-10-lambda-3."""
        return "-".join(self.name.lower().replace("=", " ").split())


def read_rows(text: str) -> list[Row]:
    """Parses lines `NAME | FLAGS`; # begins a comment."""
    rows = []
    for line in text.splitlines():
        if line.strip() and not line.lstrip().startswith("#"):
            name, _, flags = line.partition("|")
            rows.append(Row(name.strip(), shlex.split(flags)))
    return rows


def flag_value(flags: list[str], name: str) -> int | None:
    return int(flags[flags.index(name) + 1]) if name in flags else None


def neighbours_of(bundle: Path, manifest: dict[str, Any]) -> int | None:
    """The number of neighbours per code in the bundle's table."""
    if "neighbours" not in manifest:
        return None
    with (bundle / manifest["neighbours"]["file"]).open("rb") as stream:
        header = json.loads(stream.read(struct.unpack("<Q", stream.read(8))[0]))
    return int(header["neighbours"]["shape"][1])


def fit(row: Row, bundle: Path) -> tuple[list[str], list[str]]:
    """Adapts the row's flags to the bundle; returns them and notes on every change."""
    manifest = json.loads((bundle / "manifest.json").read_text(encoding="utf-8"))
    flags, notes = list(row.flags), []
    codes, known = manifest["tokens"]["codebook_size"], neighbours_of(bundle, manifest)
    kept, k = flag_value(flags, "--top-k"), flag_value(flags, "--relax-k")
    if kept is not None and kept > codes:
        notes.append(f"top-k {kept} keeps all of its {codes} codes")
    if k is not None and known is not None and k > known:
        flags[flags.index("--relax-k") + 1] = str(known)
        notes.append(f"relax-k {known} instead of {k}: the table has only {known} neighbours")
    return flags, notes


def demo_captions(count: int, file: Path) -> Path:
    """Held-out captions of the demo's world."""
    import numpy as np

    from models.demo.render.captions import caption
    from models.demo.training.classifier import held_out_scenes

    rng = np.random.default_rng(2024)
    texts = [caption(scene, rng) for _, scene in held_out_scenes(0, count)]
    file.write_text(json.dumps(texts, indent=1) + "\n", encoding="utf-8")
    return file


class Reproduction:
    def __init__(self, options: argparse.Namespace, rows: list[Row]) -> None:
        self.options, self.rows = options, rows
        self.notes: dict[str, list[str]] = {row.name: [] for row in rows}
        self.skipped: set[str] = set()

    def command(self, flags: Sequence[str], folder: Path) -> list[str]:
        words = [str(self.options.program), "batch", "--captions", str(self.options.captions)]
        words += ["--select", "longest", "-m", str(self.options.bundle), "-o", str(folder), *flags]
        for name in ("limit", "device", "dtype", "threads", "batch_size"):
            value = getattr(self.options, name)
            if value is not None:
                words += [f"--{name.replace('_', '-')}", str(value)]
        return words

    def probe(self, flags: list[str]) -> subprocess.CompletedProcess[str]:
        """Runs a row with --dry-run in a temporary folder."""
        with tempfile.TemporaryDirectory() as folder:
            words = self.command([*flags, "--dry-run"], Path(folder) / "row")
            return subprocess.run(words, capture_output=True, text=True)

    def generate(self, row: Row) -> None:
        flags, notes = fit(row, self.options.bundle)
        self.notes[row.name] += notes
        remarks = f" ({'; '.join(notes)})" if notes else ""
        print(f"{row.name}: {' '.join(flags)}{remarks}", flush=True)
        if self.options.dry_run:
            result = self.probe(flags)
            output = result.stderr if result.returncode else result.stdout
            print("  " + output.strip().splitlines()[-1], flush=True)
            return
        words = self.command([*flags, "--quiet"], self.options.out / row.folder)
        result = subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        if result.returncode in UNSUPPORTED:
            # The bundle is the cause only if the row fails in an empty folder, too.
            again = self.probe(flags)
            if again.returncode in UNSUPPORTED:
                self.skipped.add(row.name)
                reason = again.stderr.strip().splitlines()[-1].removeprefix("lamplighter: error: ")
                self.notes[row.name].append(f"not generated: {reason}")
                print(f"  not generated: {reason}", flush=True)
                return
        sys.stderr.write(result.stderr)
        if result.returncode not in (0, 8):  # 8: some images failed, which the table counts
            sys.exit(result.returncode if result.returncode > 0 else 128 - result.returncode)

    def score(self) -> int:
        generated = [row for row in self.rows if row.name not in self.skipped]
        if not generated:
            print("error: no row could be generated", file=sys.stderr)
            return 4
        out = self.options.out
        folders = [f"{row.name}={out / row.folder}" for row in generated]
        table = ["--export-markdown", out / "table.md", "--export-json", out / "table.json"]
        words = [sys.executable, ROOT / "scripts" / "evaluate.py", *folders, *table]
        words += [*self.options.scoring, "--scores", out / "scores.json"]
        code = subprocess.run([str(word) for word in words]).returncode
        lines = [f"{name}: {'; '.join(notes)}" for name, notes in self.notes.items() if notes]
        (out / "notes.txt").write_text("".join(line + "\n" for line in lines), encoding="utf-8")
        for line in lines:
            print(line)
        return code

    def run(self) -> int:
        for row in self.rows:
            self.generate(row)
        return 0 if self.options.dry_run else self.score()


def parse(arguments: list[str]) -> tuple[argparse.ArgumentParser, argparse.Namespace]:
    words = argparse.ArgumentParser(
        prog=f"scripts/reproduce/{os.environ.get('TABLE', 'rows')}.sh",
        description=f"{os.environ.get('ABOUT', '')}\n\n{__doc__}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )

    def add(flag: str, help: str, **options: Any) -> None:
        name = flag.lstrip("-").replace("-", "_").upper()
        options.setdefault("default", os.environ.get(name))
        words.add_argument(flag, help=f"{help} ({name}=)", **options)

    add("--bundle", "bundle of the paper's model, with its drafter", metavar="DIR", type=Path)
    add("--captions", "caption file as for `lamplighter batch`; the demo has its own", metavar="FILE", type=Path)  # fmt: skip
    add("--limit", "generate only the first N captions", metavar="N", type=int)
    add("--out", "default: out/TABLE/BUNDLE", metavar="DIR", type=Path)
    add("--device", "auto, cpu, cuda or cuda:N", metavar="NAME")
    add("--dtype", "default: the default of the device", metavar="NAME")
    add("--threads", "CPU threads", metavar="N", type=int)
    add("--batch-size", "images side by side; the papers use 1", metavar="N", type=int, default=os.environ.get("BATCH_SIZE", 1))  # fmt: skip
    add("--program", "default: build/lamplighter", metavar="FILE", type=Path, default=os.environ.get("PROGRAM", ROOT / "build" / "lamplighter"))  # fmt: skip
    words.add_argument("--dry-run", action="store_true", help="check every row and estimate its time")  # fmt: skip
    split = arguments.index("--") if "--" in arguments else len(arguments)
    options = words.parse_args(arguments[:split])
    options.scoring = arguments[split + 1 :]
    if options.bundle is None or not (options.bundle / "manifest.json").is_file():
        words.error(f"--bundle: got {options.bundle}, expected the folder of a bundle")
    if options.captions is not None and not options.captions.exists():
        words.error(f"--captions: {options.captions}: no such file")
    if options.limit is not None and options.limit < 1:
        words.error(f"--limit: got {options.limit}, expected a number above 0")
    options.bundle = options.bundle.resolve()
    options.out = options.out or Path("out") / os.environ["TABLE"] / options.bundle.name
    return words, options


def main() -> int:
    words, options = parse(sys.argv[1:])
    manifest = json.loads((options.bundle / "manifest.json").read_text(encoding="utf-8"))
    is_demo = manifest["name"].startswith("lamplighter-demo")
    if options.captions is None and not is_demo:
        words.error("--captions: missing, expected the paper's captions")
    options.out.mkdir(parents=True, exist_ok=True)
    if options.captions is None:
        count = options.limit or DEMO_CAPTIONS
        options.captions = demo_captions(count, options.out / "captions.json")
    if is_demo and "--metrics" not in options.scoring:
        options.scoring = ["--metrics", "demo", *options.scoring]
    return Reproduction(options, read_rows(os.environ["ROWS"])).run()


if __name__ == "__main__":
    sys.exit(main())
