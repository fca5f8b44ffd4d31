"""Exporter of LlamaGen: official GPT, image tokenizer and Flan-T5 files to a bundle."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from ...bundle import Storage
from ...llamagen.config import GPT_SIZES
from ...scratch import temporary
from ..checkpoint import ExportError
from ..common import ROLES, STORAGES, add_bundle_options, errors_of, origin, require_parts
from ..config_file import Section
from ..messages import note
from ..settings import checked_sampling
from .bundle import Parts, TokenizerFile, extra_ids_of, llamagen_bundle
from .config import STAGES, Hints, split_config
from .networks import load_gpt, load_t5, load_vq
from .unigram import spiece_of


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
        "--spiece",
        type=Path,
        metavar="FILE",
        help="SentencePiece model, default DIR/spiece.model, or one made of DIR/tokenizer.json",
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
    no_file = Section({"gpt": {}}, "--config", exit_code=2)
    blocks = split_config(Section.read(options.config, 2) if options.config else no_file)
    sampling = checked_sampling(blocks["sampling"])
    parts = Parts()
    out = options.out.resolve()
    with errors_of(options.out):
        out.parent.mkdir(parents=True, exist_ok=True)
        with temporary(out, "weights") as scratch:
            load_parts(parts, options, blocks, scratch)
            bundle = llamagen_bundle(parts, *origin(options, files), sampling, dtypes)
            bundle.write(options.out, options.overwrite)
    if options.t5 and parts.tokenizer is None:
        path = options.t5 / "spiece.model"
        print(f"note: {path} is missing, the bundle gets no tokenizer", file=sys.stderr)


def load_parts(
    parts: Parts, options: argparse.Namespace, blocks: dict[str, Section], scratch: Path
) -> None:
    """Reads the files that the command line names."""
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
        parts.tokenizer = find_tokenizer(options.t5, options.spiece, scratch)


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
        if storage.bits and role in ROLES[2:]:
            part = role.replace("_", " ")
            raise ExportError(f"--dtype {text}: an {part} has no products to round", 2)
        roles = [role] if equals else ROLES[:2] if storage.bits else ROLES
        chosen.update(dict.fromkeys(roles, storage))
    return chosen


def find_tokenizer(folder: Path, named: Path | None, scratch: Path) -> TokenizerFile | None:
    """The SentencePiece model, in `scratch` if it is made of tokenizer.json.

    Without either the bundle can be checked but takes no captions.
    """
    path = named or folder / "spiece.model"
    if path.is_file():
        return TokenizerFile(path, extra_ids_of(folder))
    if named:
        raise ExportError(f"{named}: no such file")
    other = folder / "tokenizer.json"
    if not other.is_file():
        return None
    content, sentinels = spiece_of(other)
    made = scratch / "spiece.model"
    made.write_bytes(content)
    note(f"{folder}: has no spiece.model, makes it of the pieces of tokenizer.json")
    return TokenizerFile(made, sentinels)
