"""Exports GLM-Image's recorded cases and compares bundles with them."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import golden_engine as engine
import torch
from golden_cases import Case
from golden_chameleon import Target
from safetensors.torch import load_file
from torch import Tensor

CELL = 32  # pixels a side of a code
TEXT_LENGTH = 100
METHODS = (("ar",), ("sjd",), ("ngram",))  # exact ones, at temperature 0


def export(case: Case, folder: Path) -> Path:
    """A bundle in fp32."""
    rows, columns = case.info["shape"]["grid"]
    config = {"sizes": [f"{CELL * columns}x{CELL * rows}"], "text_length": TEXT_LENGTH}
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    words = ("--model", case.folder / "model", "--config", folder / "config.json")
    command = ("models.export", "glm-image", *words, "--dtype", "fp32", "--out", folder / "bundle")
    engine.run(sys.executable, "-m", *command)
    return folder / "bundle"


def check_prompts(case: Case, bundle: Path) -> None:
    rows, columns = case.info["shape"]["grid"]
    size = {"width": CELL * columns, "height": CELL * rows}
    requests = [{"prompt": run["prompt"], **size} for run in case.info["runs"]]
    lines = "".join(json.dumps(request) + "\n" for request in requests)
    found = engine.run(engine.BUILD / "golden_prompts", bundle, stdin=lines).splitlines()
    for run, line in zip(case.info["runs"], found, strict=True):
        assert json.loads(line)["ids"] == case.tensors[f"{run['run']}.ids"].tolist(), run["run"]


def check_grid(case: Case, bundle: Path) -> None:
    """The small image in front has the sides that the processor gives it."""
    (grid,) = json.loads((bundle / "manifest.json").read_text(encoding="utf-8"))["grids"]
    for run in case.info["runs"]:
        assert [grid["rows"], grid["columns"]] == run["grid"]
        preview = grid["preview"]
        sides = case.tensors[f"{run['run']}.preview"].tolist()
        assert [preview["rows"], preview["columns"]] == sides


@torch.inference_mode()
def check_logits(case: Case, bundle: Path) -> None:
    """Id by id with the cache; what is left by top-k of those that were sampled."""
    for run in case.info["runs"]:
        name = run["run"]
        tokens, prompt = case.long(f"{name}.tokens"), case.long(f"{name}.ids")
        target = Target(bundle, 1, len(prompt) + len(tokens))
        hidden = [target.prefill([prompt])[0][-1:]]
        hidden += [target.step(token) for token in tokens[:-1]]
        logits = target.logits(torch.stack(hidden, 1))[0]
        allowed = case.info["tolerance"]["logits"]
        if case.has(f"{name}.logits"):
            engine.assert_close(f"{name} logits", logits, case.tensors[f"{name}.logits"], allowed)
        else:
            check_scores(case, run, logits)


def check_scores(case: Case, run: dict[str, Any], logits: Tensor) -> None:
    """Probabilities of every code."""
    scores = case.tensors[f"{run['run']}.scores"].double()
    for row, expected in zip(logits, scores.softmax(-1), strict=True):
        got = engine.probabilities(row[None], 1.0, run["top_k"], run.get("top_p", 1.0))[0]
        engine.assert_close(run["run"], got, expected, case.info["tolerance"]["probabilities"])
        engine.assert_same_support(run["run"], got, expected)


def check_codes(case: Case, bundle: Path, folder: Path, method: tuple[object, ...]) -> None:
    """Codes of greedy images by the program, in both kinds of files."""
    for run in (run for run in case.info["runs"] if not run["top_k"]):
        rows, columns = run["grid"]
        tokens = case.long(f"{run['run']}.tokens")
        preview, codes = tokens[: -rows * columns], tokens[-rows * columns :]
        for file in (folder / "codes.json", folder / "codes.safetensors"):
            engine.run(
                engine.BUILD / "lamplighter", "generate", "-m", bundle, "-q", "--overwrite",
                "-p", run["prompt"], "--temperature", 0, "--dtype", "fp32", "--device", "cpu",
                "--threads", 1, "--save-codes", file, "--method", *method,
            )  # fmt: skip
        (image,) = json.loads((folder / "codes.json").read_text(encoding="utf-8"))["images"]
        assert (image["rows"], image["columns"]) == (rows, columns)
        assert image["preview"] == preview.tolist(), run["run"]
        assert image["codes"] == codes.tolist(), run["run"]
        tensors = load_file(folder / "codes.safetensors")
        assert torch.equal(tensors["codes.0"], codes.view(rows, columns))
        assert torch.equal(tensors["preview.0"], preview)
