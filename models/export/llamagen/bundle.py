"""Assembles a bundle from LlamaGen models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sentencepiece
import torch

from ...bundle import Bundle, BundleModule, Storage
from ...llamagen.config import PUBLISHED_DOWNSAMPLE, GPTConfig
from ...llamagen.gpt import GPT
from ...llamagen.t5 import T5Encoder
from ...llamagen.target_module import ClassTargetModule, TargetModule
from ...llamagen.text_encoder_module import TextEncoderModule
from ...llamagen.vq import VQModel
from ...recording import Call
from ..checkpoint import ExportError, widest
from ..common import (
    decoder_part,
    encoder_part,
    grid_entry,
    network_entries,
    sampling_entry,
    seeded,
    target_calls,
)
from ..config_file import Section

TEXT_LENGTH = 120
PUBLISHED_SENTINELS = 100
SAMPLING = {"t2i": sampling_entry(7.5, 1000), "c2i": sampling_entry(4.0, 2000)}


@dataclass
class TokenizerFile:
    """A SentencePiece model; extra_ids sentinels follow its pieces."""

    path: Path
    extra_ids: int = PUBLISHED_SENTINELS
    cleaning: str = "llamagen"


@dataclass
class Parts:
    """Parts of a bundle, each optional, with weights in fp32 or another float dtype."""

    gpt: GPT | None = None
    vq: VQModel | None = None
    t5: T5Encoder | None = None
    tokenizer: TokenizerFile | None = None


def llamagen_bundle(
    parts: Parts,
    name: str,
    licence: str,
    source: str,
    sampling: Mapping[str, Any] | None = None,
    storages: Mapping[str, Storage] | None = None,
) -> Bundle:
    """The bundle of the parts; `storages` is how weights are stored by module role.

    ValueError: the parts do not fit each other.
    """
    check_fit(parts)
    wanted = dict(storages or {})
    kind = parts.gpt.config.model_type if parts.gpt else "t2i"
    bundle = Bundle(name, f"llamagen-{kind}", licence, source)
    if parts.gpt is not None:
        bundle.modules["target"] = target_part(parts.gpt, wanted.get("target"))
        downsample = parts.vq.config.downsample if parts.vq else PUBLISHED_DOWNSAMPLE
        bundle.entries.update(target_entries(parts.gpt.config))
        pixels = parts.gpt.config.grid * downsample
        bundle.entries["grids"] = [grid_entry(pixels, pixels, downsample)]
        bundle.entries["sampling"] = {**SAMPLING[kind], **(sampling or {})}
    if parts.t5 is not None:
        bundle.modules["text_encoder"] = text_part(parts.t5, wanted.get("text_encoder"))
    if parts.tokenizer is not None:
        length = parts.gpt.config.cls_token_num if parts.gpt else TEXT_LENGTH
        bundle.files["spiece.model"] = parts.tokenizer.path
        bundle.entries["tokenizer"] = tokenizer_entry(parts.tokenizer, length)
    if parts.vq is not None:
        storage = wanted.get("image_decoder")
        bundle.modules["image_decoder"] = decoder_part(parts.vq, storage.dtype if storage else None)
        config = parts.vq.config
        storage = wanted.get("image_encoder")
        dtype = storage.dtype if storage else None
        bundle.modules.update(encoder_part(parts.vq, config.downsample, dtype))
        bundle.entries["decoder"] = {
            "codebook_size": config.codebook_size,
            "downsample": config.downsample,
        }
    return bundle


def check_fit(parts: Parts) -> None:
    gpt = parts.gpt.config if parts.gpt else None
    if gpt and parts.vq and gpt.vocab_size != parts.vq.config.codebook_size:
        raise ValueError(
            f"gpt has {gpt.vocab_size} image tokens, vq has {parts.vq.config.codebook_size} codes"
        )
    if gpt and parts.t5 and gpt.model_type != "t2i":
        raise ValueError("gpt is class-conditional and takes no text encoder")
    if gpt and parts.t5 and gpt.caption_dim != parts.t5.config.d_model:
        raise ValueError(
            f"gpt takes features of width {gpt.caption_dim}, t5 gives {parts.t5.config.d_model}"
        )
    if parts.t5 and parts.tokenizer:
        pieces = read_pieces(parts.tokenizer.path).vocab_size()
        ids = pieces + parts.tokenizer.extra_ids
        if ids > parts.t5.config.vocab_size:
            raise ValueError(f"the tokenizer has {ids} ids, t5 embeds {parts.t5.config.vocab_size}")


def target_entries(config: GPTConfig) -> dict[str, Any]:
    prompt: dict[str, Any] = {"length": config.cls_token_num, "align": "end"}
    if config.model_type == "t2i":
        prompt.update(kind="text_features", features=config.caption_dim)
    else:
        prompt.update(kind="class", classes=config.num_classes)
    return {"prompt": prompt, **network_entries(config, 0, config.vocab_size, config.max_length)}


def tokenizer_entry(tokenizer: TokenizerFile, length: int) -> dict[str, Any]:
    pieces = read_pieces(tokenizer.path)
    return {
        "kind": "t5",
        "file": "spiece.model",
        "max_length": length,
        "pad": max(pieces.pad_id(), 0),
        "eos": pieces.eos_id(),
        "unk": pieces.unk_id(),
        "extra_ids": tokenizer.extra_ids,
        "cleaning": tokenizer.cleaning,
    }


def read_pieces(path: Path) -> sentencepiece.SentencePieceProcessor:
    try:
        return sentencepiece.SentencePieceProcessor(str(path))
    except (RuntimeError, OSError) as error:
        raise ExportError(
            f"{path}: no SentencePiece model, expected spiece.model of a T5"
        ) from error


def extra_ids_of(folder: Path) -> int:
    """Number of sentinels a Hugging Face tokenizer folder declares, 100 when it is silent."""
    file = folder / "tokenizer_config.json"
    if not file.is_file():
        return PUBLISHED_SENTINELS
    return Section.read(file).integer("extra_ids", PUBLISHED_SENTINELS, least=0, most=10000)


def target_part(model: GPT, wanted: Storage | None) -> BundleModule:
    storage = wanted or Storage(widest(model.parameters()))
    stored = model.to(storage.dtype)
    c2i = model.config.model_type == "c2i"
    module = ClassTargetModule(stored) if c2i else TargetModule(stored)
    return BundleModule(module, storage.dtype, gpt_calls(model.config), bits=storage.bits)


def text_part(model: T5Encoder, wanted: Storage | None) -> BundleModule:
    storage = wanted or Storage(widest(model.parameters()))
    ids = torch.randint(model.config.vocab_size, (1, 6), generator=seeded())
    calls = [Call("encode", [ids, torch.ones_like(ids)])]
    module = TextEncoderModule(model.to(storage.dtype))
    return BundleModule(module, storage.dtype, calls, bits=storage.bits)


def gpt_calls(config: GPTConfig) -> list[Call]:
    """Recorded calls: the condition, then the calls of any target."""
    random = seeded()
    if config.model_type == "t2i":
        ones = torch.ones(1, min(3, config.cls_token_num), dtype=torch.int64)
        condition = torch.randn(1, ones.shape[1], config.caption_dim, generator=random)
    else:
        ones = torch.ones(1, 1, dtype=torch.int64)
        condition = torch.randint(config.num_classes, (1, 1), generator=random)
    calls = [Call("embed_condition", [condition, ones]), Call("embed_unconditional", [ones])]
    return calls + target_calls(config, config.cls_token_num, random)
