"""Exporter of Tar's de-tokenizer: published files to a bundle that makes images of TA-Tok's codes."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ...bundle import Bundle, BundleModule, Storage
from ...recording import Call
from ...tar.config import DetokenizerConfig
from ...tar.ta_tok import TaTok
from ...tar.target_module import TargetModule
from ...tar.text_encoder_module import TextEncoderModule
from ..common import (
    SPARE_POSITIONS,
    STORAGES,
    add_bundle_options,
    add_config_option,
    add_dtype_option,
    decoder_entry,
    decoder_part,
    encoder_part,
    grid_entry,
    make_bundle,
    network_entries,
    require_parts,
    sampling_entry,
    seeded,
    target_calls,
)
from ..config_file import Section
from ..llamagen.networks import load_vq
from ..messages import ExportError
from ..settings import read_sampling
from ..tensors import widest
from .bundle import LICENCE
from .detokenizer_weights import Detokenizer, read_network, read_ta_tok

SAMPLING = sampling_entry(4.0, 0)  # the published program's: guidance alone
LISTS = "codes.json"  # the bundle's file of how many codes a prompt may have
PARTS = ("gpt", "ta_tok", "vq")


def add_parser(families: Any) -> None:
    parser = families.add_parser(
        "tar-decoder",
        help="Tar's de-tokenizer, which makes images of the codes of a bundle of Tar",
        description="Writes a bundle from the published files. Its prompts are lists of codes: `generate "
        "--prompt-codes FILE` takes them from what `generate --save-codes FILE` wrote with the language model.",
    )
    parser.set_defaults(run=run)
    for name, help in (
        ("gpt", "the network, ar_dtok_lp_512px.pth"),
        ("ta-tok", "TA-Tok, ta_tok.pth"),
        ("vq", "LlamaGen's image tokenizer, vq_ds16_t2i.pt"),
    ):
        parser.add_argument(f"--{name}", type=Path, required=True, metavar="FILE", help=help)
    add_dtype_option(parser, "storage of the network and of TA-Tok")
    add_config_option(parser, '"n_head" (of sizes that are not published) and "sampling"')
    add_bundle_options(parser, LICENCE)


def run(options: argparse.Namespace) -> None:
    files = require_parts(options, *PARTS)
    make_bundle(options, files, lambda bundle, scratch: fill(bundle, options, scratch))


def fill(bundle: Bundle, options: argparse.Namespace, scratch: Path) -> None:
    """Adds all parts. ExportError: they do not fit each other."""
    given = Section.read(options.config, 2) if options.config else Section({}, "--config")
    given.known(["n_head", "sampling"])
    sampling = read_sampling(given)
    network = read_network(options.gpt, given)
    ta_tok = read_ta_tok(options.ta_tok)
    # The engine decodes in fp32; rounded rows have no unit length.
    vq = load_vq(options.vq, Section({}, "")).float()
    config = network.config
    for path, what, got, expected in (
        (options.ta_tok, "features of width", ta_tok.config.dim, config.features),
        (options.vq, "a number of codes of", vq.config.codebook_size, config.vocab_size),
    ):
        if got != expected:
            raise ExportError(f"{path}: has {what} {got}, expected {expected} as in {options.gpt}")
    storage = STORAGES.get(options.dtype)
    bundle.modules["target"] = target_part(network, storage)
    bundle.modules["text_encoder"] = encoder_of(ta_tok, config, storage)
    bundle.modules["image_decoder"] = decoder_part(vq, None)
    bundle.modules.update(encoder_part(vq, vq.config.downsample, None))
    bundle.entries.update(entries(config, vq.config.downsample))
    bundle.entries["sampling"] = {**SAMPLING, **sampling}
    lists = {"codes": ta_tok.config.codes, "lengths": config.lengths}
    (scratch / LISTS).write_text(json.dumps(lists) + "\n", encoding="utf-8")
    bundle.files[LISTS] = scratch / LISTS


def entries(config: DetokenizerConfig, downsample: int) -> dict[str, Any]:
    length, pixels = config.prompt_length, config.side * downsample
    return {
        "prompt": {
            "kind": "text_features",
            "length": length,
            "align": "start",
            "features": config.features,
        },
        "tokenizer": {"kind": "codes", "file": LISTS, "max_length": length},
        **network_entries(config, 0, config.vocab_size, config.positions + 1),
        "grids": [grid_entry(pixels, pixels, downsample)],
        "decoder": decoder_entry(config.vocab_size, downsample, "truncate"),
    }


def target_part(network: Detokenizer, wanted: Storage | None) -> BundleModule:
    config = network.config
    storage = wanted or Storage(network.weights.dtype)

    def read(name: str) -> Tensor:
        return network.read(name).to(storage.dtype)

    module = TargetModule(config, config.positions + 1 + SPARE_POSITIONS, read)
    random = seeded()
    ones = torch.ones(1, min(3, config.prompt_length), dtype=torch.int64)
    features = torch.randn(1, ones.shape[1], config.features, generator=random)
    calls = [Call("embed_condition", [features, ones]), Call("embed_unconditional", [ones])]
    calls += target_calls(config, 2, random)
    return BundleModule(module, storage.dtype, calls, bits=storage.bits)


def encoder_of(model: TaTok, config: DetokenizerConfig, wanted: Storage | None) -> BundleModule:
    storage = wanted or Storage(widest(model.parameters()))
    module = TextEncoderModule(model, storage.dtype).to(storage.dtype)
    count = config.lengths[0]
    ids = torch.randint(model.config.codes, (1, count), generator=seeded())
    calls = [Call("encode", [ids, torch.ones_like(ids)])]
    return BundleModule(module, storage.dtype, calls, bits=storage.bits)
