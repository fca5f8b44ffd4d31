"""Exports Tar's recorded cases and compares bundles with them."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import golden_engine as engine
from golden_cases import Case
from golden_glm_image import METHODS, check_logits
from safetensors.torch import load_file

CELL = 14  # pixels a side of a code
TEXT_LENGTH = 150

__all__ = ["METHODS", "check", "check_codes", "check_logits", "check_prompts", "export"]


def export(case: Case, folder: Path) -> Path:
    """A bundle in fp32."""
    sizes = [f"{CELL * side}x{CELL * side}" for side in case.info["shape"]["sides"]]
    config = {"sizes": sizes, "text_length": TEXT_LENGTH}
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    words = ("--model", case.folder / "model", "--config", folder / "config.json")
    command = ("models.export", "tar", *words, "--dtype", "fp32", "--out", folder / "bundle")
    engine.run(sys.executable, "-m", *command)
    return folder / "bundle"


def check_prompts(case: Case, bundle: Path) -> None:
    """The scale's id comes last."""
    requests = [
        {"prompt": run["prompt"], "width": CELL * run["grid"][1], "height": CELL * run["grid"][0]}
        for run in case.info["runs"]
    ]
    lines = "".join(json.dumps(request) + "\n" for request in requests)
    found = engine.run(engine.BUILD / "golden_prompts", bundle, stdin=lines).splitlines()
    for run, line in zip(case.info["runs"], found, strict=True):
        assert json.loads(line)["ids"] == case.tensors[f"{run['run']}.ids"].tolist(), run["run"]


def check_codes(case: Case, bundle: Path, folder: Path, method: tuple[object, ...]) -> None:
    """Codes of greedy images by the program, in both kinds of files."""
    first = json.loads((bundle / "manifest.json").read_text())["tokens"]["first_image_id"]
    for run in (run for run in case.info["runs"] if not run["top_k"]):
        rows, columns = run["grid"]
        codes = case.long(f"{run['run']}.tokens") - first
        for file in (folder / "codes.json", folder / "codes.safetensors"):
            engine.run(
                engine.BUILD / "lamplighter", "generate", "-m", bundle, "-q", "--overwrite",
                "-p", run["prompt"], "-W", CELL * columns, "-H", CELL * rows, "--temperature", 0,
                "--dtype", "fp32", "--device", "cpu", "--threads", 1, "--save-codes", file, "--method", *method,
            )  # fmt: skip
        (image,) = json.loads((folder / "codes.json").read_text(encoding="utf-8"))["images"]
        assert (image["rows"], image["columns"]) == (rows, columns)
        assert image["codes"] == codes.tolist(), run["run"]
        found = load_file(folder / "codes.safetensors")["codes.0"]
        assert found.tolist() == codes.view(rows, columns).tolist()


def check(case: Case, folder: Path) -> None:
    """All of it."""
    bundle = export(case, folder)
    check_prompts(case, bundle)
    check_logits(case, bundle)
    for method in METHODS:
        check_codes(case, bundle, folder, method)
