"""Reads Chameleon's image tokenizer in its published forms, for the decoder and encoder of a bundle.

It comes as Meta's vqgan.ckpt, or among the weights of a Hugging Face folder under model.vqmodel.
Shapes are read off the tensors; a configuration (vqgan.yaml, config.json) has to agree with them.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import torch

from ...bundle import BundleModule
from ...chameleon.vqgan import VQGAN, VQGANConfig
from ...unfilled import unfilled
from .. import checkpoint
from ..checkpoint import ExportError, State, count_blocks, shape_of
from ..common import check_block, decoder_entry, decoder_part, encoder_part
from ..config_file import Section, shown
from ..json_file import parse
from .foreign_classes import foreign_classes

MOST_BYTES = 1 << 20  # of a vqgan.yaml
ANCHORS = ("quantize.embedding.weight",)
READS_IMAGES = ("encoder.", "quant_conv.")
SOURCES = "give Meta's vqgan.ckpt or the folder of leloy/Anole-7b-v0.1-hf"
# Names in Hugging Face's vq_config -> names in vqgan.yaml.
ALIASES = {
    "base_channels": "ch",
    "channel_multiplier": "ch_mult",
    "latent_channels": "z_channels",
    "num_embeddings": "n_embed",
    "double_latent": "double_z",
    "out_channels": "out_ch",
}
FIXED = {  # what the official code could vary and no published tokenizer does
    "in_channels": 3,
    "out_ch": 3,
    "double_z": False,
    "attn_type": "vanilla",
    "resamp_with_conv": True,
    "tanh_out": False,
    "give_pre_end": False,
}


def vqgan_parts(
    path: Path, config: Path | None = None, dtype: torch.dtype | None = torch.float32
) -> tuple[dict[str, BundleModule], dict[str, Any]]:
    """The image decoder, the encoder where there is one, and the manifest's entry `decoder`;
    arguments as in load_vqgan.

    `dtype` is the storage precision, None the precision of the checkpoint.
    """
    model = load_vqgan(path, config)
    downsample = model.config.downsample
    entry = decoder_entry(model.config.n_embed, downsample, "truncate")
    encoder = encoder_part(model, downsample, dtype)
    return {"image_decoder": decoder_part(model, dtype), **encoder}, entry


def load_vqgan(path: Path, config: Path | None = None, encoder: bool = True) -> VQGAN:
    """The tokenizer in a file or folder, its encoder too where there is one and `encoder` asks for it.

    `config` is a vqgan.yaml or config.json, by default the one beside the weights, if any.
    ExportError: it is not there, has no decoder, or contradicts the configuration.
    """
    if not path.exists():
        raise ExportError(f"{path}: no such file or folder")
    if path.is_dir() and (path / "vqgan.ckpt").is_file():
        path = path / "vqgan.ckpt"
    if path.is_dir():
        state = checkpoint.read_folder(path, ANCHORS)
    else:
        with foreign_classes(path):  # the framework it was trained with leaves its own
            content = checkpoint.read_file(path)
        state = checkpoint.unwrap(content, path, ANCHORS)
    state = tokenizer_state(state, path)
    config = config or config_beside(path)
    settings = read_settings(config) if config else Section({}, str(path))
    shapes = vqgan_config(state, settings, str(path))
    if not encoder:
        state = {k: v for k, v in state.items() if not k.startswith(READS_IMAGES)}
    with unfilled():
        model = VQGAN(shapes, encoder=any(key.startswith("encoder.") for key in state))
    checkpoint.load_strictly(model, state, str(path))
    return model


def tokenizer_state(state: State, where: Path) -> State:
    """The tokenizer's tensors under their original names, without what only training used."""
    if ANCHORS[0] not in state:
        raise ExportError(f"{where}: no image tokenizer (quantize.embedding.weight); {SOURCES}")
    if not any(key.startswith("decoder.") for key in state):
        raise ExportError(
            f"{where}: the image tokenizer has no decoder weights (decoder.*), it only reads "
            f"images; {SOURCES}"
        )
    return {k: v for k, v in state.items() if not k.startswith("loss.")}


def vqgan_config(state: State, settings: Section, where: str) -> VQGANConfig:
    """Dimensions by the tensors, with which the settings must agree.

    Only the split of a decoder's widths into ch and ch_mult is in neither of its tensors.
    """
    codes, embed_dim = shape_of(state, "quantize.embedding.weight", 2, where)
    facts = {
        **decoder_facts(state, settings.values.get("ch"), where),
        "embed_dim": embed_dim,
        "n_embed": codes,
    }
    found = facts.pop("attn_levels")
    levels = len(facts["ch_mult"])
    known = {k: v for k, v in settings.values.items() if k in facts or k in FIXED}
    given = Section(known, settings.where, settings.prefix, names=settings.names)
    check_block(given, {**facts, **FIXED}, where)
    check_attention(found, levels, settings, where)
    return VQGANConfig(**facts, attn_levels=tuple(found))


def decoder_facts(state: State, given: Any, where: str) -> dict[str, Any]:
    """Reads a decoder's configuration from its tensors; given: ch, where a file has it."""
    levels = count_blocks(state, "decoder.up.")
    if not levels:
        raise ExportError(f"{where}: missing key decoder.up.0.block.0.conv1.weight")
    widths = [
        shape_of(state, f"decoder.up.{i}.block.0.conv1.weight", 4, where)[0] for i in range(levels)
    ]
    if "encoder.conv_in.weight" in state:
        ch = shape_of(state, "encoder.conv_in.weight", 4, where)[0]
    else:
        ch = given if isinstance(given, int) and given > 0 else math.gcd(*widths)
    if ch % 32 or any(width % ch for width in widths):
        raise ExportError(
            f"{where}: got levels of {', '.join(map(str, widths))} channels, expected multiples of "
            f"ch = {ch}, itself a multiple of 32"
        )
    return {
        "ch": ch,
        "ch_mult": tuple(width // ch for width in widths),
        "num_res_blocks": count_blocks(state, "decoder.up.0.block.") - 1,
        "z_channels": shape_of(state, "post_quant_conv.weight", 4, where)[0],
        "attn_levels": [
            i for i in range(levels) if any(k.startswith(f"decoder.up.{i}.attn.") for k in state)
        ],
    }


def check_attention(found: list[int], levels: int, settings: Section, where: str) -> None:
    """Attention is configured by the side of the feature map that an image of training has."""
    sides, resolution = map(settings.values.get, ("attn_resolutions", "resolution"))
    if not isinstance(sides, list) or not isinstance(resolution, int):
        return
    configured = [i for i in range(levels) if resolution // 2**i in sides]
    if configured != found:
        raise ExportError(
            f"{settings.where}: {settings.prefix}attn_resolutions is {shown(sides)} at resolution "
            f"{resolution}, levels {configured}, expected levels {found} as in {where}"
        )


def config_beside(path: Path) -> Path | None:
    """The configuration that lies with the weights, if any."""
    if path.is_dir():
        candidates = [path / "config.json"]
    else:
        candidates = [path.with_suffix(".yaml"), path.parent / "vqgan.yaml"]
    return next((file for file in candidates if file.is_file()), None)


def read_settings(config: Path) -> Section:
    """The tokenizer's settings under the names of vqgan.yaml."""
    if config.suffix == ".json":
        value = checkpoint.read_json(config)
        block = value.get("vq_config") or value
    else:
        sections = read_yaml(config)
        own = {**sections.get("", {}), **sections.get("params", {})}
        block = {**own, "ddconfig": sections.get("ddconfig")}
    if not isinstance(block, dict):
        raise ExportError(f"{config}: vq_config: expected an object, got {type(block).__name__}")
    nested = block.get("ddconfig")
    block = {**block, **nested} if isinstance(nested, dict) else block
    settings = Section(block, str(config)).renamed(ALIASES)
    if "ch_mult" not in settings and config.suffix != ".json":
        raise ExportError(f"{config}: got no ch_mult, expected model.params.ddconfig of a VQGAN")
    return settings


def read_yaml(path: Path) -> dict[str, dict[str, Any]]:
    """Scalars and lists of scalars by the name of the map they stand in, and their own.

    That is the YAML these files consist of; lines of any other kind are passed over.
    """
    try:
        if path.stat().st_size > MOST_BYTES:
            raise ExportError(f"{path}: has more than {MOST_BYTES} bytes, expected a vqgan.yaml")
        lines = path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError as error:
        raise ExportError(f"{path}: no such file") from error
    except (OSError, ValueError) as error:
        raise ExportError(f"{path}: not readable as text: {error}") from error
    sections: dict[str, dict[str, Any]] = {}
    parents: list[tuple[int, str]] = []
    items: list[Any] = []
    for line in lines:
        content = line.partition(" #")[0].strip()
        if content.startswith("- "):
            items.append(scalar(content[2:]))
            continue
        key, colon, value = content.partition(":")
        if not colon or content.startswith("#"):
            continue
        indent = len(line) - len(line.lstrip())
        while parents and parents[-1][0] >= indent:
            parents.pop()
        section = sections.setdefault(parents[-1][1] if parents else "", {})
        parents.append((indent, key))
        items = []
        section[key] = scalar(value) if value.strip() else items
    return sections


def scalar(text: str) -> Any:
    """A number, boolean, null or flow list as JSON has them, anything else as text."""
    try:
        return parse(text)
    except (ValueError, RecursionError):
        return text.strip().strip("'\"")
