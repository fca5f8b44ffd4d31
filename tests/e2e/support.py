"""Shared by the tests of the command line: bundles of random weights and types of fixtures."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

import torch
from PIL import Image
from torch import Tensor

from models.bundle import BundleModule, Storage
from models.eagle.config import DrafterConfig
from models.eagle.drafter import Drafter
from models.eagle.eagle3 import Eagle3Config, Eagle3Drafter
from models.export.__main__ import main as export
from models.export.drafters.attach import attach, target_head
from models.export.drafters.eagle import attach_drafter
from models.export.drafters.eagle3 import eagle3_part
from models.export.drafters.flash import flash_part
from models.export.drafters.heads import heads_part, speculator_part
from models.export.drafters.refine import refiner_part
from models.heads.flash import Flash, FlashConfig
from models.heads.medusa import Heads, HeadsConfig
from models.heads.mlp import Speculator, SpeculatorConfig
from models.heads.refine import Refiner, RefinerConfig
from models.llamagen.config import GPTConfig, VQConfig
from models.llamagen.gpt import GPT
from models.llamagen.vq import VQModel

CAPTION = "a red boat on the sea at dawn"
CODES = 40
SIDE = 32  # pixels of an image: 4 x 4 tokens

DRAFTED = ("eagle", "eagle-2", "lantern", "lantern++", "eagle+sjd")  # need a drafter
METHODS = (
    *DRAFTED,
    "eagle-3",
    "flash",
    "flash+sjd",
    "lookahead",
    "medusa",
    "mlp",
    "refine",
    "self",
    "sjd",
    "sjd-pac",
    "zipar",
    "zipar+sjd",
    "pjd",
)
RELAXED = ("--method", "lantern++", "--tree", "chain-3", "--relax-k", 7, "--lambda", "4,2.5")

Result = subprocess.CompletedProcess[str]
Cli = Callable[..., Result]
Refused = Callable[..., str]


def export_bundle(folder: Path, config: GPTConfig, *arguments: object) -> Path:
    """Writes a bundle of fixed random weights to `folder`/bundle."""
    torch.manual_seed(11)
    vq = VQConfig(
        ch=32, encoder_ch_mult=(1, 1, 1, 1), decoder_ch_mult=(1, 1, 1, 1), num_res_blocks=0,
        z_channels=32, codebook_size=CODES,
    )  # fmt: skip
    gpt = GPT(config)
    torch.nn.init.normal_(
        gpt.output.weight, std=0.2
    )  # the initial zeros would make all tokens equally likely
    torch.save({"model": gpt.state_dict()}, folder / "gpt.pt")
    torch.save({"model": VQModel(vq, False).state_dict()}, folder / "vq.pt")
    (folder / "config.json").write_text(
        json.dumps({"gpt": {"n_head": config.n_head, "grid": config.grid}})
    )
    parts = (
        "--gpt",
        folder / "gpt.pt",
        "--vq",
        folder / "vq.pt",
        "--config",
        folder / "config.json",
    )
    out = folder / "bundle"
    assert export([str(word) for word in ("llamagen", "--out", out, *parts, *arguments)]) == 0
    return out


def parsed(result: Result) -> dict[str, Any]:
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)  # type: ignore[no-any-return]


def numbers(cli: Cli, *arguments: object, model: Path | None) -> dict[str, Any]:
    """The JSON output of a measuring command."""
    return parsed(cli(*arguments, "--json", "-q", "--threads", 1, model=model))


def edit_manifest(folder: Path, change: Callable[[dict], None]) -> None:  # type: ignore[type-arg]
    manifest = json.loads((folder / "manifest.json").read_text())
    change(manifest)
    (folder / "manifest.json").write_text(json.dumps(manifest))


def replace_file(folder: Path, name: str, content: bytes) -> None:
    """Replaces a file of a bundle and its checksum in the manifest."""
    (folder / name).write_bytes(content)
    entry = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    edit_manifest(folder, lambda manifest: manifest["files"].update({name: entry}))


def damaged(
    bundle: Path,
    folder: Path,
    module: str,
    choose: Callable[[str], bool],
    rows: slice = slice(None),
) -> Path:
    """Sets weights of one module of a bundle to NaN."""
    shutil.copytree(bundle, folder)
    script = torch.jit.load(str(folder / module))
    named = [*script.named_parameters(), *script.named_buffers()]
    chosen = [value for name, value in named if choose(name)]
    assert chosen, [name for name, _ in named]
    with torch.no_grad():
        for value in chosen:
            value[rows] = float("nan")
    script.save(str(folder / module))
    replace_file(folder, module, (folder / module).read_bytes())
    return folder


def add_drafter(bundle: Path) -> None:
    """Attaches a drafter and heads with random weights, whose drafts are sometimes accepted."""
    torch.manual_seed(5)
    manifest = json.loads((bundle / "manifest.json").read_text())
    config = DrafterConfig(
        hidden=manifest["target"]["features"], heads=2, ffn=48, vocabulary=CODES, max_length=200,
        grid=manifest["grids"][0]["columns"], prompt_length=manifest["prompt"]["length"],
    )  # fmt: skip
    attach_drafter(bundle, "main", Drafter(config).eval().requires_grad_(False))
    heads = Heads(HeadsConfig(manifest["target"]["hidden"], manifest["target"]["head"], 4))
    storage = Storage(torch.float32)
    part = heads_part(heads.requires_grad_(False), storage, manifest)
    attach(bundle, "heads", False, lambda *_: part)
    sizes = (manifest["target"]["hidden"], manifest["tokens"]["vocabulary"], 4)
    steps = Speculator(SpeculatorConfig(*sizes)).requires_grad_(False)
    attach(bundle, "steps", False, lambda *_: speculator_part(steps, storage, manifest))
    widths = (manifest["target"]["hidden"], manifest["target"]["head"])
    refiner = Refiner(RefinerConfig(*widths, 24, 16)).requires_grad_(False)
    attach(bundle, "stale", False, lambda *_: refiner_part(refiner, storage))
    flash = Flash(FlashConfig(replace(config, ffn=64), 3, 2, 5)).requires_grad_(False)
    add_layer(bundle, "ahead", lambda head: flash_part(flash, head, 200, storage))
    layers = tuple({0, manifest["cache"]["layers"] - 1})
    width = len(layers) * manifest["target"]["hidden"]
    inner = Eagle3Drafter(Eagle3Config(config, width, CODES, layers)).requires_grad_(False)
    add_layer(bundle, "inner", lambda _: eagle3_part(inner, storage, manifest))


def add_layer(bundle: Path, name: str, make: Callable[[Tensor], BundleModule]) -> None:
    """Attaches a drafter that `make` builds from the target's head, for prompts without tokens."""

    def part(folder: Path, manifest: dict[str, Any]) -> BundleModule:
        made = make(target_head(folder, manifest))
        made.entries["prompt_id"] = 0
        return made

    attach(bundle, name, False, part)


def pixels(path: Path | BinaryIO) -> bytes:
    with Image.open(path) as image:
        return image.convert("RGB").tobytes()


def texts(path: Path) -> dict[str, str]:
    with Image.open(path) as image:
        return dict(image.text)


def codes(path: Path) -> list[list[int]]:
    """Of every image in a file of --save-codes."""
    return [image["codes"] for image in json.loads(path.read_text())["images"]]
