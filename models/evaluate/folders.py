"""Folders of `lamplighter batch`: which images they hold, of which captions, and what these cost."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .errors import EvaluationError

# Options of a run, as run.json names them, and the words of `bench --methods`; defaults are left out.
WORDS = {
    "relax_k": "k",
    "delta": "delta",
    "lambda": "lambda",
    "tree": "tree",
    "dynamic_depth": "depth",
    "dynamic_width": "width",
    "dynamic_nodes": "nodes",
}
RULES = {name: "exact" for name in ("eagle", "eagle-2", "ngram", "sjd", "scd")}
USUAL = {"children": "sampled", "residual": "paper"}


@dataclass(frozen=True)
class FoundImage:
    path: Path
    caption: str


@dataclass
class Folder:
    """The results of one run."""

    name: str
    path: Path
    method: str = ""
    images: list[FoundImage] = field(default_factory=list)
    failed: int = 0  # the engine could not generate these
    missing: int = 0  # not generated yet, or the file is gone
    tokens: int = 0
    passes: int = 0
    milliseconds: float = 0.0  # of prefills and cycles, of all images
    settings: dict[str, Any] = field(default_factory=dict)

    @property
    def step_compression(self) -> float:
        """Tokens a target pass, the prompt's pass counted."""
        return self.tokens / self.passes if self.passes else 0.0

    @property
    def ms(self) -> float:
        """Milliseconds an image: prompt's pass and cycles; text encoder and image decoder left out."""
        return self.milliseconds / len(self.images) if self.images else 0.0


def method_name(settings: dict[str, Any]) -> str:
    """A run's method in the words of `bench --methods`: lantern++:k=10:lambda=3:tree=chain-4."""
    name = str(settings.get("method", "?"))
    values = {word: settings[key] for key, word in WORDS.items() if key in settings}
    if settings.get("rule", RULES.get(name, name)) != RULES.get(name, name):
        values["rule"] = settings["rule"]
    for key, usual in USUAL.items():
        if name != "eagle-2" and settings.get(key, usual) != usual:
            values[key] = settings[key]
    if values.get("tree") in ("bundle", "dynamic" if name == "eagle-2" else "bundle"):
        del values["tree"]

    def text(value: Any) -> str:
        if isinstance(value, list):
            return "/".join(text(each) for each in value)
        return f"{value:g}" if isinstance(value, float) else str(value)

    return ":".join([name, *(f"{word}={text(value)}" for word, value in values.items())])


def records(path: Path) -> dict[tuple[int, int], dict[str, Any]]:
    """The last line of every image in a folder's manifests, in the order of captions.

    A last line without its end is a write that was cut off, and passed over.
    """
    found: dict[tuple[int, int], dict[str, Any]] = {}
    files = sorted({*path.glob("manifest.jsonl"), *path.glob("manifest-*.jsonl")})
    if not files:
        raise EvaluationError(
            f"{path}: no manifest.jsonl, expected a folder of `lamplighter batch`"
        )
    for file in files:
        with file.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                if not line.endswith("\n"):
                    break
                try:
                    record = json.loads(line)
                    found[record["index"], record["repeat"]] = record
                except (ValueError, KeyError, TypeError) as error:
                    raise EvaluationError(
                        f"{file}:{number}: not a line of `lamplighter batch`"
                    ) from error
    return dict(sorted(found.items()))


def read_folder(text: str) -> Folder:
    """FOLDER or NAME=FOLDER."""
    name, mark, path = text.rpartition("=")
    if Path(text).is_dir():
        name, mark, path = "", "", text
    folder = Folder(name, Path(path))
    if not folder.path.is_dir():
        raise EvaluationError(f"{path}: no such folder, expected one of `lamplighter batch`")
    try:
        run = json.loads((folder.path / "run.json").read_text(encoding="utf-8"))
        configurations = run["configurations"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise EvaluationError(
            f"{folder.path}/run.json: cannot be read, expected a folder of `lamplighter batch`"
        ) from error
    found = records(folder.path)
    used = {record.get("configuration", 0) for record in found.values()}
    if len(used) > 1 and not mark:
        raise EvaluationError(
            f"{folder.path}: got images of {len(used)} configurations, expected one (or NAME=FOLDER)"
        )
    folder.settings = configurations[max(used, default=0)]
    folder.method = method_name(folder.settings)
    folder.name = folder.name or folder.method
    for record in found.values():
        add(folder, record)
    wanted = int(folder.settings.get("images", len(found)))
    folder.missing += max(0, wanted - len(found))
    return folder


def add(folder: Folder, record: dict[str, Any]) -> None:
    """Counts an image, or why it does not count."""
    if record.get("status") != "ok":
        folder.failed += 1
        return
    file = folder.path / record["file"]
    if not file.is_file():
        folder.missing += 1
        return
    folder.images.append(FoundImage(file, record.get("caption", "")))
    folder.tokens += record["tokens"]
    folder.passes += record["target_passes"]
    # The times of a batch count for all its images.
    times = record["ms"]
    folder.milliseconds += (times["prefill"] + times["decode"]) / record.get("batch", 1)
