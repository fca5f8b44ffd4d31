"""Parts that exporters share: options, errors, manifest entries, calls to record."""

from __future__ import annotations

import argparse
import functools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from .. import ops
from ..bundle import Bundle, BundleModule, Storage
from ..recording import Call
from ..scratch import clean_leftovers, temporary
from ..transformer.config import DecoderConfig
from ..vq.blocks import ImageTokenizer
from ..vq.image_decoder_module import ImageDecoderModule
from ..vq.image_encoder_module import ImageEncoderModule
from .checkpoint import ExportError, widest
from .config_file import Section, shown

STORAGES = {
    "fp32": Storage(torch.float32),
    "bf16": Storage(torch.bfloat16),
    "fp16": Storage(torch.float16),
    "int8": Storage(torch.bfloat16, 8),
    "int4": Storage(torch.bfloat16, 4),
}
ROLES = ("target", "text_encoder", "image_decoder", "image_encoder")
SPARE_POSITIONS = 64  # a tree may reach beyond the last token of an image


def add_bundle_options(parser: argparse.ArgumentParser, licence: str = "unspecified") -> None:
    """Options of every exporter that makes a bundle."""
    parser.add_argument("--out", type=Path, required=True, metavar="BUNDLE")
    parser.add_argument("--name", help="default: name of the bundle's folder")
    parser.add_argument("--licence", default=licence, help="licence of the weights")
    parser.add_argument("--source", default="", help="where the weights come from")
    parser.add_argument("--overwrite", action="store_true", help="replace an existing bundle")


def add_dtype_option(parser: argparse.ArgumentParser, help: str = "storage of the target") -> None:
    parser.add_argument("--dtype", default="keep", choices=("keep", *STORAGES), help=help)


def add_model_options(
    parser: argparse.ArgumentParser,
    model: str,
    tokenizer: str | None = "default: DIR/tokenizer.json",
) -> None:
    """The files of a target; model, tokenizer: what they are, None where no option names it."""
    parser.add_argument("--model", type=Path, metavar="PATH", help=model)
    if tokenizer:
        parser.add_argument("--tokenizer", type=Path, metavar="FILE", help=tokenizer)
    add_dtype_option(parser)


def add_config_option(parser: argparse.ArgumentParser, content: str) -> None:
    parser.add_argument("--config", type=Path, metavar="FILE", help=f"JSON with {content}")


def add_attach_options(parser: argparse.ArgumentParser, name: str) -> None:
    """Options of every exporter that adds to a bundle; name: what --name names."""
    parser.add_argument("--bundle", type=Path, required=True, metavar="DIR")
    parser.add_argument("--name", required=True, help=name)
    parser.add_argument("--overwrite", action="store_true", help="replace what has the same name")


def require_parts(options: argparse.Namespace, *names: str) -> list[Path]:
    """The files that options of these names give; ExportError: none, or the bundle exists."""
    paths = [path for name in names if (path := getattr(options, name))]
    if not paths:
        flags = [f"--{name}" for name in names]
        choice = " or ".join([*filter(None, [", ".join(flags[:-1])]), flags[-1]])
        raise ExportError(f"nothing to export: give {choice}", 2)
    clean_leftovers(options.out.resolve())
    if options.out.exists() and not options.overwrite:
        raise ExportError(f"{options.out} exists already; give --overwrite to replace it", 7)
    return paths


def origin(options: argparse.Namespace, paths: Sequence[Path]) -> tuple[str, str, str]:
    """Name, licence and source of the bundle that is made of these files."""
    source = options.source or "exported from " + ", ".join(path.name for path in paths)
    return options.name or options.out.resolve().name, options.licence, source


@contextmanager
def errors_of(bundle: Path) -> Iterator[None]:
    """Turns what goes wrong while a bundle is made or changed into an ExportError."""
    try:
        yield
    except ValueError as error:
        raise ExportError(str(error)) from error
    except OSError as error:
        raise ExportError(f"{bundle}: {error.strerror or error}", 7) from error


def make_bundle(
    options: argparse.Namespace, files: Sequence[Path], fill: Callable[[Bundle, Path], None]
) -> None:
    """Writes the bundle of the command line; `fill` adds its parts, with a folder for large weights."""
    name, licence, source = origin(options, files)
    log = functools.partial(print, flush=True)
    bundle = Bundle(name, options.family, licence, source, log=log)
    out = options.out.resolve()
    with errors_of(options.out):
        ops.load()
        out.parent.mkdir(parents=True, exist_ok=True)
        with temporary(out, "weights") as scratch:
            fill(bundle, scratch)
            bundle.write(options.out, options.overwrite)


def parse_sizes(text: str, where: str = "--sizes") -> list[tuple[int, int]]:
    """Pairs of positive numbers from WIDTHxHEIGHT,..."""
    sizes = []
    for item in text.split(","):
        width, _, height = item.strip().partition("x")
        legal = all(re.fullmatch("[1-9][0-9]{0,4}", side) for side in (width, height))
        if not legal:
            raise ExportError(f"{where}: got {item!r}, expected WIDTHxHEIGHT such as 768x768", 2)
        sizes.append((int(width), int(height)))
    return sizes


def check_block(block: Section, facts: Mapping[str, Any], where: str) -> None:
    """Every key of the configuration must be known and agree with what the tensors of `where` say."""
    for key, value in block.values.items():
        if key in ("kind", "variant"):
            continue
        if key not in facts:
            raise ExportError(f"{block.where}: unknown key {block.label(key)}", 2)
        fact = list(facts[key]) if isinstance(facts[key], tuple) else facts[key]
        if fact is not None and (
            value != fact or isinstance(value, bool) != isinstance(fact, bool)
        ):
            got = f"{block.where}: {block.label(key)} is {shown(value)}"
            raise ExportError(f"{got}, expected {shown(fact)} as in {where}")


def network_entries(
    config: DecoderConfig, first_image_id: int, codes: int, max_length: int
) -> dict[str, Any]:
    """Manifest entries of a target whose head gives the ids of `codes` codes."""
    return {
        "tokens": {
            "vocabulary": config.vocab_size,
            "first_image_id": first_image_id,
            "codebook_size": codes,
        },
        "target": {"hidden": config.dim, "features": config.dim, "head": codes},
        "cache": {
            "layers": config.n_layer,
            "kv_heads": config.n_kv_head,
            "head_dim": config.head_dim,
            "max_length": max_length,
        },
    }


def grid_entry(width: int, height: int, downsample: int) -> dict[str, Any]:
    """Manifest entry of an image of width x height pixels without ids around its codes."""
    return {
        "width": width,
        "height": height,
        "rows": height // downsample,
        "columns": width // downsample,
        "before": [],
        "row_end": [],
        "after": [],
    }


def fitted_grids(
    positions: int, sizes: Sequence[tuple[int, int]], downsample: int, prompt_length: int
) -> tuple[list[dict[str, Any]], int]:
    """Manifest entries of images without ids around their codes, and the positions that the largest takes
    with its prompt. ExportError: an image does not fit the model's positions."""
    grids = []
    for width, height in sizes:
        if width % downsample or height % downsample:
            raise ExportError(
                f"size {width}x{height}: expected multiples of {downsample} pixels", 2
            )
        grids.append(grid_entry(width, height, downsample))
    longest = max(grid["rows"] * grid["columns"] for grid in grids)
    length = prompt_length + longest
    if length > positions:
        raise ExportError(
            f"images of {longest} codes behind prompts of {prompt_length} ids take {length} "
            f"positions, the model has {positions}",
            2,
        )
    return grids, length


def decoder_entry(codes: int, downsample: int, pixels: str) -> dict[str, Any]:
    """Manifest entry of an image decoder; pixels: how levels become bytes."""
    return {"codebook_size": codes, "downsample": downsample, "pixels": pixels}


def add_tokenizer(bundle: Bundle, path: Path, max_length: int) -> None:
    """Adds a tokenizer.json; max_length: most ids of a text."""
    bundle.entries["tokenizer"] = {"kind": "bpe", "file": path.name, "max_length": max_length}
    bundle.files[path.name] = path


def sampling_entry(cfg_scale: float, top_k: int) -> dict[str, Any]:
    return {"cfg_scale": cfg_scale, "temperature": 1.0, "top_k": top_k, "top_p": 1.0, "order": "ar"}


def seeded() -> torch.Generator:
    """Random numbers of recorded calls."""
    return torch.Generator().manual_seed(0)


def decoder_calls(
    rows: Sequence[Tensor],
    vocabulary: int,
    first: int,
    cache: Sequence[int],
    random: torch.Generator,
) -> list[Call]:
    """Calls that targets and drafters answer: embeddings, a small tree after two cached rows, a
    chain, the head.

    rows: what `forward` takes in front of positions, [1,4,H] each; first: position of row 0; cache:
    layers, key/value heads and width of a head.
    """
    layers, kv_heads, head_dim = cache
    positions = torch.tensor([[first, first + 1, first + 1, first + 2]])
    tree = torch.tensor([[[0b0001], [0b0011], [0b0101], [0b1011]]])
    slots = torch.zeros(layers, 2, 1, kv_heads, 6, head_dim)
    slots[..., :2, :] = torch.randn(slots[..., :2, :].shape, generator=random)
    lengths, causal = torch.tensor([2]), torch.empty(0, dtype=torch.int64)
    ids = torch.randint(vocabulary, (1, 2), generator=random)
    two = [t[:, :2] for t in (*rows, positions)]
    return [
        Call("embed", [ids]),
        Call("forward", [*rows, positions, tree, lengths, slots], mutates_last=True),
        Call("forward", [*two, causal, lengths, slots[..., :4, :]]),
        Call("logits", [rows[-1]]),
    ]


def target_calls(config: DecoderConfig, first: int, random: torch.Generator) -> list[Call]:
    """Calls of a target; first: position of row 0."""
    cache = (config.n_layer, config.n_kv_head, config.head_dim)
    rows = torch.randn(1, 4, config.dim, generator=random)
    return decoder_calls([rows], config.vocab_size, first, cache, random)


def decoder_part(
    model: ImageTokenizer,
    wanted: torch.dtype | None,
    scripted: Callable[[ImageTokenizer], nn.Module] = ImageDecoderModule,
) -> BundleModule:
    """The image decoder, stored in its own precision unless another one is wanted."""
    dtype = wanted or widest(model.parameters())
    size = model.quantize.embedding.num_embeddings
    codes = torch.randint(size, (1, 4, 4), generator=seeded())
    return BundleModule(scripted(model).to(dtype), dtype, [Call("decode", [codes])])


def encoder_part(
    model: ImageTokenizer,
    downsample: int,
    wanted: torch.dtype | None,
    scripted: Callable[[ImageTokenizer], nn.Module] = ImageEncoderModule,
) -> dict[str, BundleModule]:
    """The image encoder by its role, stored as decoder_part stores the decoder; empty where the
    checkpoint has none.

    downsample: pixels along a side of a code.
    """
    if not model.has_encoder:
        return {}
    dtype = wanted or widest(model.parameters())
    calls = encoder_calls(model.quantize.table().detach(), downsample)
    return {"image_encoder": BundleModule(scripted(model).to(dtype), dtype, calls)}


def encoder_calls(table: Tensor, downsample: int) -> list[Call]:
    """Calls of an image encoder with the codes `table`."""
    random = seeded()
    rgb = torch.rand(1, 3, 2 * downsample, 2 * downsample, generator=random) * 2 - 1
    rows = table[torch.randint(len(table), (1, 2, 2), generator=random)].permute(0, 3, 1, 2)
    # Latents of noise may lie between two rows; a row is nearest to itself on every machine.
    return [Call("latents", [rgb]), Call("nearest", [rows.float()])]
