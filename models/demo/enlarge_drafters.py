"""Drafters for the enlarged demo that draft as the demo's do, at the published sizes' cost."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ..bundle import BundleModule, Storage
from ..eagle.config import DrafterConfig
from ..eagle.drafter import Drafter
from ..eagle.eagle3 import Eagle3Config, Eagle3Drafter
from ..export.common import SPARE_POSITIONS
from ..export.drafters.eagle import drafter_part
from ..export.drafters.eagle3 import eagle3_part
from ..export.drafters.flash import flash_part
from ..export.drafters.heads import heads_part, speculator_part
from ..export.drafters.refine import refiner_part
from ..heads.flash import Flash, FlashConfig
from ..heads.medusa import Heads, HeadsConfig
from ..heads.mlp import NORM_EPS, Speculator, SpeculatorConfig
from ..heads.refine import Refiner, RefinerConfig
from .enlarged_modules import (
    EnlargedDrafter,
    EnlargedFlash,
    EnlargedHeads,
    EnlargedRefiner,
    EnlargedSpeculator,
)
from .enlarger import Enlarger, Weights, fill, read_weights


def enlarge_drafter(small: Weights, eps: float, enlarger: Enlarger) -> Drafter:
    """The drafter for the large target that does what the small one does."""
    config, dim = enlarger.config, enlarger.small_dim
    has_norm, has_bias = small["first_norm"].numel() > 0, small["bias"].numel() > 0
    torch.manual_seed(1)
    drafter = Drafter(
        DrafterConfig(
            hidden=config.dim,
            heads=config.n_head,
            ffn=config.ffn_dim,
            vocabulary=config.vocab_size,
            max_length=len(small["rotary"]),
            fc_bias=has_bias,
            input_norm=has_norm,
            norm_eps=eps * dim / config.dim,
            grid=config.grid,
            prompt_length=config.cls_token_num,
        )
    )
    drafter = drafter.bfloat16().requires_grad_(False)
    fill(drafter.embed_tokens.weight, small["embedding"])
    halves = drafter.fc.weight.view(config.dim, 2, config.dim)
    fill(halves, small["fc"].view(dim, 2, dim))
    if has_bias:
        fill(drafter.fc.bias, small["bias"])
    layer = drafter.layers[0]
    if has_norm:
        enlarger.norm(layer.input_layernorm, small["first_norm"])
    enlarger.norm(layer.post_attention_layernorm, small["attention_norm"])
    attention, mlp = layer.self_attn, layer.mlp
    for linear, part in zip(
        (attention.q_proj, attention.k_proj, attention.v_proj), enlarger.projections(small["wqkv"])
    ):
        linear.weight.copy_(part)
    attention.o_proj.weight.copy_(enlarger.output(small["wo"]))
    for linear, part in zip((mlp.gate_proj, mlp.up_proj), small["w13"].chunk(2)):
        fill(linear.weight[: len(part)], part)
    fill(mlp.down_proj.weight, small["w2"])
    return drafter


@dataclass(frozen=True)
class Small:
    """A small drafter's entry in the manifest and archive, and what its large form is made for."""

    entry: Mapping[str, Any]
    module: torch.jit.ScriptModule
    weights: Weights
    head: Tensor  # of the large target, [V,H]
    known: int  # codes of the head that are sampled
    length: int  # positions

    @classmethod
    def read(
        cls, entry: Mapping[str, Any], archive: Path, head: Tensor, known: int, length: int
    ) -> Small:
        return cls(entry, *read_weights(archive), head, known, length)


def enlarged(
    small: Small, enlarger: Enlarger, regrid: Callable[[Tensor], Tensor]
) -> BundleModule | None:
    """The large drafter; None for kinds that are not enlarged. regrid: of the small rotations."""
    makers = {
        "eagle": enlarged_eagle,
        "eagle-3": enlarged_eagle3,
        "flash": enlarged_flash,
        "medusa": enlarged_medusa,
        "mlp": enlarged_mlp,
        "refine": enlarged_refiner,
    }
    make = makers.get(small.entry.get("kind", "eagle"))
    if make is None:
        return None
    if "rotary" not in small.weights:  # heads alone
        return make(small, enlarger)
    small.weights["rotary"] = regrid(small.weights["rotary"])
    part = make(small, enlarger)
    part.module.rotary = enlarger.rotary(part.module.rotary, small.weights["rotary"])
    part.entries["prompt_id"] = small.entry["prompt_id"]
    return part


def enlarged_eagle(small: Small, enlarger: Enlarger) -> BundleModule:
    eps = small.module.layer.eps if hasattr(small.module, "layer") else small.module.eps
    drafter = enlarge_drafter(small.weights, eps, enlarger)
    part = drafter_part(
        drafter, small.head, small.length, None, partial(EnlargedDrafter, known=small.known)
    )
    # The archive's precision would round the scale of the norms.
    layer = drafter.layers[0]
    if small.weights["first_norm"].numel() > 0:
        part.module.first_norm = layer.input_layernorm.weight.detach()
    part.module.layer.attention_norm = layer.post_attention_layernorm.weight.detach()
    return part


def large_layer(enlarger: Enlarger, ffn: int, eps: float, rows: int) -> DrafterConfig:
    """Sizes of the large target's layers; rows: of the small drafter's rotations."""
    config = enlarger.config
    return DrafterConfig(
        hidden=config.dim,
        heads=config.n_head,
        ffn=ffn,
        vocabulary=config.vocab_size,
        max_length=rows,
        norm_eps=eps * enlarger.small_dim / config.dim,
        grid=config.grid,
        prompt_length=config.cls_token_num,
    )


def enlarged_eagle3(small: Small, enlarger: Enlarger) -> BundleModule:
    """Its draft vocabulary is the codes that are sampled."""
    config, dim, layers = enlarger.config, enlarger.small_dim, small.entry["feature_layers"]
    torch.manual_seed(2)
    layer = large_layer(enlarger, config.ffn_dim, small.module.eps, len(small.weights["rotary"]))
    drafter = Eagle3Drafter(
        Eagle3Config(layer, len(layers) * config.dim, small.known, tuple(layers))
    )
    drafter = drafter.bfloat16().requires_grad_(False)
    fill(drafter.embed_tokens.weight, small.weights["embedding"])
    fill(drafter.fc.weight.view(config.dim, -1, config.dim), small.weights["fc"].view(dim, -1, dim))
    fill(drafter.lm_head.weight, small.weights["head"])
    middle, attention = drafter.midlayer, drafter.midlayer.self_attn
    norms = {
        "token_norm": middle.input_layernorm,
        "feature_norm": middle.hidden_norm,
        "layer.attention_norm": middle.post_attention_layernorm,
        "norm": drafter.norm,
    }
    for name, norm in norms.items():
        enlarger.norm(norm, small.weights[name.removeprefix("layer.")])
    halves = (
        small.weights["wqkv"].view(-1, 2, dim).unbind(1)
    )  # what reads embeddings, what reads features
    joined = zip(*(enlarger.projections(half) for half in halves))
    for linear, parts in zip((attention.q_proj, attention.k_proj, attention.v_proj), joined):
        linear.weight.copy_(torch.cat(parts, 1))
    attention.o_proj.weight.copy_(enlarger.output(small.weights["wo"]))
    for linear, part in zip(
        (middle.mlp.gate_proj, middle.mlp.up_proj), small.weights["w13"].chunk(2)
    ):
        fill(linear.weight[: len(part)], part)
    fill(middle.mlp.down_proj.weight, small.weights["w2"])
    manifest = {
        "cache": {"max_length": small.length - SPARE_POSITIONS},
        "tokens": {"first_image_id": 0},
        "target": {"head": len(small.head)},
        "prompt": {"kind": "text_features"},
    }
    made = eagle3_part(drafter, None, manifest)
    made.module.token_norm = norms["token_norm"].weight.detach()
    made.module.feature_norm = norms["feature_norm"].weight.detach()
    made.module.norm = norms["norm"].weight.detach()
    made.module.layer.attention_norm = norms["layer.attention_norm"].weight.detach()
    return made


def enlarged_flash(small: Small, enlarger: Enlarger) -> BundleModule:
    """The inner width is four times the features, as published."""
    config, dim = enlarger.config, enlarger.small_dim
    groups, count, width = small.entry["kv_heads"], small.entry["heads"], enlarger.small_head
    torch.manual_seed(3)
    layer = large_layer(enlarger, 4 * config.dim, 1e-6, len(small.weights["rotary"]))
    layer = replace(layer, kv_heads=groups)
    flash = Flash(
        FlashConfig(layer, count, small.entry.get("queries", 0), small.entry.get("window", 0))
    )
    flash = flash.bfloat16().requires_grad_(False)
    fill(flash.embed_tokens.weight, small.weights["embedding"])
    fill(flash.fc.weight.view(config.dim, 2, config.dim), small.weights["fc"].view(dim, 2, dim))
    fill(flash.fc.bias, small.weights["fc_bias"])
    if flash.config.queries:
        fill(flash.queries, small.weights["queries"])
    own = flash.layers
    heads = small.weights["wo"].shape[1] // groups // width
    rows = [heads * width, (heads * (groups - 1)) * width, groups * width, groups * width]
    for part in ("weight", "bias"):
        name = {"weight": "wqkv", "bias": "qkv_bias"}[part]
        q, _, k, v = small.weights[name].split(rows)  # q stands there once for each group
        for linear, block in ((own.q_proj, q), (own.k_proj, k), (own.v_proj, v)):
            into = getattr(linear, part)
            into = into.view(-1, config.head_dim, *into.shape[1:])
            fill(into[: block.shape[0] // width], block.view(-1, width, *block.shape[1:]))
    output = own.o_proj.weight.view(config.dim, -1, config.head_dim)
    fill(output, small.weights["wo"].view(dim, -1, width)[:, :heads])
    fill(own.o_proj.bias, small.weights["wo_bias"])
    inner, outer = own.ar_proj[0], own.ar_proj[2]
    fill(inner.weight[: len(small.weights["inner"])], small.weights["inner"])
    fill(inner.bias, small.weights["inner_bias"])
    fill(outer.weight.view(count, config.dim, -1), small.weights["outer"].view(count, dim, -1))
    fill(outer.bias.view(count, -1), small.weights["outer_bias"].view(count, -1))
    make = partial(EnlargedFlash, known=small.known)
    return flash_part(flash, small.head, small.length, Storage(torch.bfloat16), make)


def enlarged_medusa(small: Small, enlarger: Enlarger) -> BundleModule:
    blocks = sum(
        name.startswith("all.0.blocks.") and name.endswith("weight") for name in small.weights
    )
    config = HeadsConfig(enlarger.config.dim, len(small.head), small.entry["heads"], blocks)
    heads = Heads(config).bfloat16().requires_grad_(False)
    for number, own in enumerate(heads):
        for i in range(blocks):
            fill(own[i].linear.weight, small.weights[f"all.{number}.blocks.{i}.weight"])
            fill(own[i].linear.bias, small.weights[f"all.{number}.blocks.{i}.bias"])
        fill(own[-1].weight, small.weights[f"all.{number}.out"])
    made = heads_part(heads, Storage(torch.bfloat16), {})
    return replace(made, module=EnlargedHeads(heads, small.known).bfloat16())


def enlarged_mlp(small: Small, enlarger: Enlarger) -> BundleModule:
    """The archive's embedding holds the weight of tokens; norms count the further channels."""
    dim, steps = enlarger.config.dim, small.entry["heads"]
    speculator = Speculator(SpeculatorConfig(dim, len(small.head), steps)).bfloat16()
    speculator = speculator.requires_grad_(False)
    ratio = speculator.config.token_weight / speculator.config.state_weight
    for number in range(steps):
        name = f"steps.{number}"
        fill(speculator.emb[number].weight, small.weights[f"{name}.emb"].float() / ratio)
        fill(speculator.proj[number].weight, small.weights[f"{name}.proj"])
        fill(speculator.head[number].weight, small.weights[f"{name}.head"])
        fill(speculator.ln[number].bias, small.weights[f"{name}.bias"])
        enlarger.norm(speculator.ln[number], small.weights[f"{name}.weight"])
    manifest = {"tokens": {"first_image_id": 0}, "target": {"head": len(small.head)}}
    made = speculator_part(speculator, Storage(torch.bfloat16), manifest)
    large = EnlargedSpeculator(speculator, small.known).bfloat16()
    for number, step in enumerate(large.steps):
        step.weight = speculator.ln[number].weight.detach()
        step.eps = NORM_EPS * enlarger.small_dim / dim
    return replace(made, module=large)


def enlarged_refiner(small: Small, enlarger: Enlarger) -> BundleModule:
    """The inner width stays: a correction of the same rank."""
    inner, width = small.weights["head"].shape[1], small.weights["embedding"].shape[1]
    refiner = Refiner(RefinerConfig(enlarger.config.dim, len(small.head), inner, width)).bfloat16()
    refiner = refiner.requires_grad_(False)
    fill(refiner.embedding.weight, small.weights["embedding"][: small.known])
    refiner.embedding.weight[-1] = small.weights["embedding"][small.known]
    fill(refiner.hidden.weight, small.weights["hidden"])
    refiner.hidden.bias.copy_(small.weights["hidden_bias"])
    for part, name in (
        (refiner.stale, "stale_in"),
        (refiner.token, "token_in"),
        (refiner.state, "state"),
    ):
        part.weight.copy_(small.weights[name])
    fill(refiner.head.weight, small.weights["head"])
    fill(refiner.head.bias, small.weights["head_bias"])
    made = refiner_part(refiner, Storage(torch.bfloat16))
    return replace(made, module=EnlargedRefiner(refiner, small.known).bfloat16())
