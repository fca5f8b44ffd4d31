"""Adds an EAGLE drafter to a bundle: a published folder, or what models.eagle.train writes."""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy
import torch
from torch import Tensor

from .. import ops
from ..bundle import BundleModule, Call, Recorder, add_part, edited, save_tensors
from ..eagle.config import DrafterConfig
from ..eagle.drafter import Drafter, from_published, rotary_table
from ..eagle.module import DrafterModule
from ..llamagen.config import known_fields
from . import checkpoint
from .archive import archived_tensor
from .checkpoint import ExportError, State
from .llamagen import DTYPES, ROLES

CONTAINERS = ("model", "state_dict", "state", "drafter")
PUBLISHED_GRIDS = {"t2i": 16, "t2i2": 32}  # input_type of the published LlamaGen drafters
NEIGHBOURS_FILE = "neighbours.safetensors"
SPARE_POSITIONS = 64  # a tree may reach beyond the last token of a picture


def add_parser(families: Any) -> None:
    parser = families.add_parser(
        "drafter",
        help="EAGLE drafter for an existing bundle",
        description="Adds a published LlamaGen, Anole or Lumina-mGPT drafter, or an own one, to a "
        "bundle; its head is the one of the bundle's target.",
    )
    parser.set_defaults(run=run)
    parser.add_argument("--bundle", type=Path, required=True, metavar="DIR")
    parser.add_argument("--name", required=True, help="the drafter's name in the bundle")
    parser.add_argument(
        "--drafter",
        type=Path,
        required=True,
        metavar="PATH",
        help="folder with config.json and model.safetensors or pytorch_model.bin, or a file of "
        "models.eagle.train",
    )
    parser.add_argument(
        "--neighbours", type=Path, metavar="FILE", help="table of nearest codes (.npy) to add"
    )
    parser.add_argument(
        "--dtype",
        default="keep",
        choices=("keep", *DTYPES),
        help="storage precision, default: that of the checkpoint",
    )
    parser.add_argument("--overwrite", action="store_true", help="replace what has the same name")


def run(options: argparse.Namespace) -> None:
    manifest = read_manifest(options.bundle)
    config, state = read_drafter(options.drafter, manifest)
    drafter = load_drafter(config, state, str(options.drafter))
    table = None
    if options.neighbours:
        table = read_neighbours(options.neighbours, manifest["tokens"]["codebook_size"])
    dtype = DTYPES.get(options.dtype)
    attach_drafter(options.bundle, options.name, drafter, dtype, options.overwrite, table)


def read_manifest(bundle: Path) -> dict[str, Any]:
    manifest = checkpoint.read_json(bundle / "manifest.json")
    if "target" not in manifest.get("modules", {}):
        raise ExportError(f"{bundle}: no target, a drafter needs one", 4)
    return manifest


def read_drafter(path: Path, manifest: Mapping[str, Any]) -> tuple[DrafterConfig, State]:
    """Shape and weights of a drafter in any layout; they must fit the bundle."""
    if path.is_dir():
        settings, state = checkpoint.read_json(path / "config.json"), checkpoint.read_folder(path)
    else:
        content = checkpoint.read_file(path)
        settings = content.get("config") if isinstance(content, Mapping) else None
        if not isinstance(settings, Mapping):
            raise ExportError(f"{path}: no config in the file; expected a drafter's folder or file")
        state = checkpoint.unwrap(content, path, CONTAINERS)
    state = checkpoint.without(state, ("rotary_emb.", "freqs_cis", "lm_head."))
    where = str(path)
    checkpoint.shape_of(state, "embed_tokens.weight", 2, where)
    try:
        if "hidden_size" in settings:
            config = published_config(settings, state, manifest, where)
        else:
            config = DrafterConfig(**known_fields(DrafterConfig, settings))
    except (TypeError, ValueError) as error:
        raise ExportError(f"{where}: config: {error}") from error
    check_fit(config, manifest, where)
    return config, state


def published_config(
    settings: Mapping[str, Any], state: State, manifest: Mapping[str, Any], where: str
) -> DrafterConfig:
    """From a Hugging Face configuration; which parts there are is told by the weights."""
    prompt, grid = manifest["prompt"], manifest["grids"][0]["columns"]
    names = ("num_attention_heads", "intermediate_size", "rms_norm_eps")
    missing = [name for name in names if name not in settings]
    if missing:
        raise ExportError(f"{where}: config.json lacks {missing[0]}")
    if settings.get("rope_scaling"):
        raise ExportError(f"{where}: rope_scaling is {settings['rope_scaling']}, expected none")
    line = has_tokens(manifest) or settings.get("model_type") == "chameleon"
    if line:
        length = manifest["cache"]["max_length"]
    else:
        check_stage(settings, grid, where)
        length = prompt["length"] + grid * grid
    return DrafterConfig(
        hidden=settings["hidden_size"],
        heads=settings["num_attention_heads"],
        kv_heads=settings.get("num_key_value_heads", 0),
        ffn=settings["intermediate_size"],
        vocabulary=state["embed_tokens.weight"].shape[0],
        max_length=length,
        fc_bias="fc.bias" in state,
        input_norm="layers.0.input_layernorm.weight" in state,
        qk_norm="layers.0.self_attn.q_norm.weight" in state,
        norm_eps=settings["rms_norm_eps"],
        rotary="line" if line else "grid",
        rope_base=settings.get("rope_theta" if line else "rope_base", 10000.0),
        grid=grid,
        prompt_length=prompt["length"],
        padding=not line and (prompt["kind"], prompt["align"]) == ("text_features", "end"),
    )


def has_tokens(manifest: Mapping[str, Any]) -> bool:
    """Prompts are tokens, which the drafter embeds; else one id stands in for them."""
    return bool(manifest["prompt"]["kind"] == "tokens")


def check_stage(settings: Mapping[str, Any], grid: int, where: str) -> None:
    """The published LlamaGen drafters are for 256 or for 512 pixels."""
    expected = PUBLISHED_GRIDS.get(settings.get("input_type", ""), grid)
    if expected != grid and grid in PUBLISHED_GRIDS.values():
        raise ExportError(
            f"{where}: input_type {settings['input_type']} is for a grid of {expected} x "
            f"{expected}, the bundle draws {grid} x {grid}"
        )


def check_fit(config: DrafterConfig, manifest: Mapping[str, Any], where: str) -> None:
    """The drafter reads the target's features, embeds its tokens and knows its picture."""
    pairs = [("hidden", config.hidden, "target.features", manifest["target"]["features"])]
    if config.rotary == "grid":
        if has_tokens(manifest):
            raise ExportError(f"{where}: rotary is grid, the bundle's prompts of tokens need line")
        grid = manifest["grids"][0]
        pairs += [
            ("grid", config.grid, "grids[0].columns", grid["columns"]),
            ("prompt_length", config.prompt_length, "prompt.length", manifest["prompt"]["length"]),
        ]
    for name, got, key, expected in pairs:
        if got != expected:
            raise ExportError(f"{where}: {name} is {got}, the bundle's {key} is {expected}")
    tokens = manifest["tokens"]["vocabulary"]
    if config.vocabulary != tokens:  # equal in every family: codes of LlamaGen, else all ids
        raise ExportError(
            f"{where}: embeds {config.vocabulary} tokens, expected the {tokens} of the bundle; is the "
            "drafter for another model?"
        )


def load_drafter(config: DrafterConfig, state: State, where: str) -> Drafter:
    """The drafter in the precision of its checkpoint."""
    for name, tensor in state.items():
        if not tensor.is_floating_point():
            raise ExportError(f"{where}: {name} is {tensor.dtype}, expected floating point")
    try:
        drafter = from_published(config, state)
    except RuntimeError as error:  # torch lists every key and shape on a line of its own
        reason = re.sub(r"\s+", " ", str(error).partition("\n")[2]).strip()
        raise ExportError(f"{where}: {reason[:300]}") from error
    return drafter.to(state["embed_tokens.weight"].dtype).requires_grad_(False)


def attach_drafter(
    bundle: Path,
    name: str,
    drafter: Drafter,
    dtype: torch.dtype | None = None,
    overwrite: bool = False,
    neighbours: Tensor | None = None,
) -> None:
    """Adds the drafter, and a table uint16 [codes,K] of neighbours, to a bundle, or changes nothing.

    dtype: storage precision, that of the weights by default.
    """
    if not re.fullmatch("[A-Za-z0-9][A-Za-z0-9._-]*", name) or name in ROLES:
        raise ExportError(f"--name {name}: expected letters, digits, . _ - and no module's name", 2)
    ops.load()
    try:
        with edited(bundle) as (folder, manifest):
            present = [name] if name in manifest.get("drafters", {}) else []
            present += ["neighbours"] if neighbours is not None and "neighbours" in manifest else []
            if present and not overwrite:
                raise ExportError(f"{bundle} has {present[0]} already; give --overwrite", 7)
            check_fit(drafter.config, manifest, f"drafter {name}")
            length = manifest["cache"]["max_length"] + SPARE_POSITIONS
            part = drafter_part(drafter, target_head(folder, manifest), length, dtype)
            if has_tokens(manifest):
                del part.entries["prompt_id"]
            recorded = Recorder.load(folder, manifest, without=name)
            old = manifest.setdefault("drafters", {}).get(name)
            if old:
                (folder / old["file"]).unlink()
            add_part(folder, manifest, recorded, "drafters", name, part)
            recorded.save(folder, manifest)
            if neighbours is not None:
                (folder / NEIGHBOURS_FILE).unlink(missing_ok=True)
                save_tensors({"neighbours": neighbours}, folder / NEIGHBOURS_FILE)
                manifest["neighbours"] = {"file": NEIGHBOURS_FILE}
    except ValueError as error:
        raise ExportError(str(error), 4) from error
    except OSError as error:
        raise ExportError(f"{bundle}: {error.strerror or error}", 7) from error


def target_head(folder: Path, manifest: Mapping[str, Any]) -> Tensor:
    """Head [V,H] of the target's archive, in its storage precision and row order."""
    file = folder / manifest["modules"]["target"]["file"]
    try:
        head = archived_tensor(file, "head")
    except RuntimeError as error:
        reason = str(error).partition("\n")[0]
        raise ExportError(f"{file.name}: no TorchScript archive: {reason}", 4) from error
    expected = [manifest["target"]["head"], manifest["target"]["features"]]
    if head is None or list(head.shape) != expected:
        got = "nothing" if head is None else f"shape {list(head.shape)}"
        raise ExportError(f"{file.name}: head: got {got}, expected shape {expected}", 4)
    return head


def drafter_part(
    drafter: Drafter, head: Tensor, length: int, wanted: torch.dtype | None
) -> BundleModule:
    """The module for positions below `length`; head and angles keep their precision."""
    config = replace(drafter.config, max_length=length)
    dtype = wanted or drafter.embed_tokens.weight.dtype
    module = DrafterModule(drafter, head).to(dtype)
    module.rotary, module.head = rotary_table(config), head.clone()
    entries = {
        "layers": 1,
        "kv_heads": config.kv_heads,
        "head_dim": config.head_dim,
        "prompt_id": config.prompt_id,
        "max_length": config.max_length,
    }
    if config.padding:
        entries["padding"] = True
    return BundleModule(module, dtype, drafter_calls(config), entries)


def drafter_calls(config: DrafterConfig) -> list[Call]:
    """Recorded calls: the embedding, a small tree after two cached rows, a chain, the head."""
    random = torch.Generator().manual_seed(0)
    embeddings, features = torch.randn(2, 1, 4, config.hidden, generator=random)
    first = config.prompt_length if config.rotary == "grid" else 2
    positions = torch.tensor([[first, first + 1, first + 1, first + 2]])
    tree = torch.tensor([[[0b0001], [0b0011], [0b0101], [0b1011]]])
    cache = torch.zeros(1, 2, 1, config.kv_heads, 6, config.head_dim)
    cache[..., :2, :] = torch.randn(cache[..., :2, :].shape, generator=random)
    lengths, causal = torch.tensor([2]), torch.empty(0, dtype=torch.int64)
    ids = torch.randint(config.vocabulary, (1, 2), generator=random)
    two = [t[:, :2] for t in (embeddings, features, positions)]
    return [
        Call("embed", [ids]),
        Call("forward", [embeddings, features, positions, tree, lengths, cache], mutates_last=True),
        Call("forward", [*two, causal, lengths, cache[..., :4, :]]),
        Call("logits", [features]),
    ]


def read_neighbours(path: Path, codes: int) -> Tensor:
    """A published table .npy [codes,K]: the nearest codes of every code, nearest first."""
    try:
        table = numpy.load(path, allow_pickle=False)
    except FileNotFoundError as error:
        raise ExportError(f"{path}: no such file") from error
    except (OSError, ValueError) as error:
        raise ExportError(f"{path}: no .npy table: {error}") from error
    integers = numpy.issubdtype(table.dtype, numpy.integer)
    if table.ndim != 2 or table.shape[0] != codes or not integers:
        got = f"{table.dtype} of shape {list(table.shape)}"
        raise ExportError(f"{path}: got {got}, expected integers [{codes}, K]")
    if table.size == 0 or table.min() < 0 or table.max() >= codes:
        raise ExportError(f"{path}: expected codes 0 to {codes - 1}")
    if (table == numpy.arange(codes)[:, None]).any():
        raise ExportError(f"{path}: a code is its own neighbour; expected others only")
    return torch.from_numpy(table.astype(numpy.uint16))
