"""Exporter of LlamaGen: official GPT, image tokenizer and Flan-T5 files to a bundle."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import torch

from ..bundle import Storage
from ..llamagen.config import GPT_SIZES
from ..llamagen.gpt import GPT
from ..llamagen.t5 import T5Encoder
from ..llamagen.vq import VQModel
from . import checkpoint
from .checkpoint import ExportError
from .common import ROLES, STORAGES, add_bundle_options, errors_of, origin, require_parts
from .llamagen_bundle import Parts, TokenizerFile, extra_ids_of, llamagen_bundle
from .llamagen_config import STAGES, Hints, gpt_config, split_config, t5_config, vq_config
from .llamagen_folder import read_converted

GPT_CONTAINERS = ("model", "module", "state_dict")
VQ_CONTAINERS = ("model", "ema", "state_dict")


def add_parser(families: Any) -> None:
    parser = families.add_parser(
        "llamagen",
        help="LlamaGen, text- or class-conditional",
        description="Writes a bundle from official LlamaGen files. Every part is optional.",
    )
    parser.set_defaults(run=run)
    parser.add_argument(
        "--gpt",
        type=Path,
        metavar="FILE",
        help="GPT checkpoint (.pt) or LANTERN's converted folder",
    )
    parser.add_argument("--vq", type=Path, metavar="FILE", help="image tokenizer checkpoint (.pt)")
    parser.add_argument("--t5", type=Path, metavar="DIR", help="Hugging Face folder of Flan-T5")
    parser.add_argument(
        "--spiece", type=Path, metavar="FILE", help="SentencePiece model, default DIR/spiece.model"
    )
    parser.add_argument("--size", choices=list(GPT_SIZES), help="published size of the GPT")
    image = parser.add_mutually_exclusive_group()
    image.add_argument("--image-size", type=int, metavar="PIXELS", help="256, 384, 512, ...")
    image.add_argument("--stage", type=int, choices=list(STAGES), help="1: 256 px, 2: 512 px")
    parser.add_argument("--config", type=Path, metavar="FILE", help="shapes in JSON: gpt, vq, t5")
    parser.add_argument(
        "--dtype",
        default="keep",
        metavar="D",
        help="storage: keep (default), fp32, bf16, fp16, int8 or int4, the last two for products of "
        f"target and text encoder; for single parts ROLE=D[,ROLE=D], roles {', '.join(ROLES)}",
    )
    add_bundle_options(parser)


def run(options: argparse.Namespace) -> None:
    dtypes = parse_dtypes(options.dtype)
    files = require_parts(options, "gpt", "vq", "t5")
    where = str(options.config or "--config")
    value = checkpoint.read_json(options.config) if options.config else {"gpt": {}}
    blocks = split_config(value, where)
    parts = Parts()
    if options.vq:
        parts.vq = load_vq(options.vq, blocks["vq"])
    if options.gpt:
        hints = Hints(
            size=options.size,
            image_size=options.image_size or STAGES.get(options.stage),
            downsample=parts.vq.config.downsample if parts.vq else None,
            file_name=options.gpt.name,
        )
        parts.gpt = load_gpt(options.gpt, blocks["gpt"], hints)
    if options.t5:
        parts.t5 = load_t5(options.t5, blocks["t5"])
        parts.tokenizer = find_tokenizer(options.t5, options.spiece)
    with errors_of(options.out):
        bundle = llamagen_bundle(parts, *origin(options, files), blocks["sampling"], dtypes)
        bundle.write(options.out, options.overwrite)


def parse_dtypes(text: str) -> dict[str, Storage]:
    """Storage by role; roles that keep theirs are left out."""
    chosen = {}
    for item in text.split(","):
        role, equals, name = item.rpartition("=")
        if (equals and role not in ROLES) or name not in ("keep", *STORAGES):
            known = ", ".join(("keep", *STORAGES))
            raise ExportError(f"--dtype {text}: expected {known} or ROLE=D,...", 2)
        if name == "keep":
            continue
        storage = STORAGES[name]
        if storage.bits and role == "image_decoder":
            raise ExportError(f"--dtype {text}: an image decoder has no products to round", 2)
        roles = [role] if equals else ROLES[:2] if storage.bits else ROLES
        chosen.update(dict.fromkeys(roles, storage))
    return chosen


def load_gpt(path: Path, block: dict[str, Any], hints: Hints) -> GPT:
    if path.is_dir():
        state, told = read_converted(path)
        block = {**told, **block}
    else:
        content = checkpoint.read_file(path)
        state = checkpoint.unwrap(content, path, GPT_CONTAINERS)
        hints.training_args = content.get("args")
    config = gpt_config(state, block, hints, str(path))
    with torch.device("meta"):
        model = GPT(config)
    checkpoint.load_strictly(
        model, checkpoint.without(state, ("freqs_cis", ".kv_cache.")), str(path)
    )
    model.reset_rotation()
    return model


def load_vq(path: Path, block: dict[str, Any]) -> VQModel:
    state = checkpoint.unwrap(checkpoint.read_file(path), path, VQ_CONTAINERS)
    state = checkpoint.without(state, ("quantize.codebook_used",))
    config = vq_config(state, block, str(path))
    has_encoder = any(key.startswith(("encoder.", "quant_conv.")) for key in state)
    with torch.device("meta"):
        model = VQModel(config, encoder=has_encoder)
    checkpoint.load_strictly(model, state, str(path))
    return model


def load_t5(folder: Path, block: dict[str, Any]) -> T5Encoder:
    if not folder.is_dir():
        raise ExportError(f"{folder}: no such folder")
    settings = checkpoint.read_json(folder / "config.json")
    config = t5_config(settings, block, str(folder))
    state = checkpoint.read_folder(folder)
    alias = state.pop("encoder.embed_tokens.weight", None)
    if alias is not None:
        state.setdefault("shared.weight", alias)
    state = {k: v for k, v in state.items() if not k.startswith(("decoder.", "lm_head."))}
    with torch.device("meta"):
        model = T5Encoder(config)
    checkpoint.load_strictly(model, state, str(folder))
    return model


def find_tokenizer(folder: Path, named: Path | None) -> TokenizerFile | None:
    """The SentencePiece model; without one the bundle can be checked but takes no captions."""
    path = named or folder / "spiece.model"
    if path.is_file():
        return TokenizerFile(path, extra_ids_of(folder))
    if named:
        raise ExportError(f"{named}: no such file")
    print(f"note: {path} is missing, the bundle gets no tokenizer", file=sys.stderr)
    return None
