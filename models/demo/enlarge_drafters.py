"""Drafters for the enlarged demo that do what those of the demo do, at the published sizes' cost."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ..bundle import BundleModule, Storage
from ..eagle.config import DrafterConfig
from ..eagle.drafter import Drafter
from ..eagle.eagle3 import Eagle3Config, Eagle3Drafter
from ..eagle.module import DrafterModule
from ..export.common import SPARE_POSITIONS
from ..export.drafters.eagle import drafter_part
from ..export.drafters.eagle3 import eagle3_part
from ..export.drafters.flash import flash_part
from ..export.drafters.heads import heads_part, speculator_part
from ..export.drafters.refine import refiner_part
from ..heads.flash import Flash, FlashConfig
from ..heads.flash_module import FlashModule
from ..heads.medusa import Heads, HeadsConfig
from ..heads.medusa_module import HeadsModule
from ..heads.mlp import NORM_EPS, Speculator, SpeculatorConfig
from ..heads.mlp_module import SpeculatorModule
from ..heads.refine import Refiner, RefinerConfig
from ..heads.refine_module import RefinerModule
from ..ops import lamplighter
from .enlarger import Enlarger, Weights, fill, only_known, read_weights


class EnlargedDrafter(DrafterModule):
    """The same of a drafter."""

    def __init__(self, drafter: Drafter, head: Tensor, known: int) -> None:
        super().__init__(drafter, head)
        self.known: int = known

    @torch.jit.export
    def logits(self, hidden: Tensor) -> Tensor:
        """hidden [S,R,H] -> [S,R,V]."""
        return only_known(lamplighter.linear(hidden, self.head, self.vocabulary), self.known)


def enlarge_drafter(small: Weights, eps: float, enlarger: Enlarger) -> Drafter:
    """The drafter for the large target that does what the small one does."""
    config, dim = enlarger.config, enlarger.small_dim
    has_norm, has_bias = small["first_norm"].numel() > 0, small["bias"].numel() > 0
    torch.manual_seed(1)
    drafter = Drafter(
        DrafterConfig(
            hidden=config.dim, heads=config.n_head, ffn=config.ffn_dim,
            vocabulary=config.vocab_size, max_length=len(small["rotary"]), fc_bias=has_bias,
            input_norm=has_norm, norm_eps=eps * dim / config.dim, grid=config.grid,
            prompt_length=config.cls_token_num,
        )
    )  # fmt: skip
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


def enlarged(
    entry: Mapping[str, Any], archive: Path, enlarger: Enlarger, head: Tensor, length: int,
    known: int, regrid: Callable[[Tensor], Tensor],
) -> BundleModule | None:  # fmt: skip
    """A drafter of the manifest's entry for positions below `length`; None for kinds that are not enlarged.

    head [V,H]: the large target's, of whose codes `known` are drawn; regrid: of the small rotations.
    """
    makers = {
        "eagle": enlarged_eagle,
        "eagle-3": enlarged_eagle3,
        "flash": enlarged_flash,
        "medusa": enlarged_medusa,
        "mlp": enlarged_mlp,
        "refine": enlarged_refiner,
    }
    make = makers.get(entry.get("kind", "eagle"))
    if make is None:
        return None
    module, small = read_weights(archive)
    if "rotary" not in small:  # heads alone
        return make(entry, module, small, enlarger, head, length, known)
    small["rotary"] = regrid(small["rotary"])
    part = make(entry, module, small, enlarger, head, length, known)
    part.module.rotary = enlarger.rotary(part.module.rotary, small["rotary"])
    part.entries["prompt_id"] = entry["prompt_id"]
    return part


def enlarged_eagle(
    entry: Mapping[str, Any], module: torch.jit.ScriptModule, small: Weights, enlarger: Enlarger,
    head: Tensor, length: int, known: int,
) -> BundleModule:  # fmt: skip
    eps = module.layer.eps if hasattr(module, "layer") else module.eps
    drafter = enlarge_drafter(small, eps, enlarger)
    part = drafter_part(drafter, head, length, None, partial(EnlargedDrafter, known=known))
    # The archive's precision would round the scale of the norms.
    layer = drafter.layers[0]
    if small["first_norm"].numel() > 0:
        part.module.first_norm = layer.input_layernorm.weight.detach()
    part.module.layer.attention_norm = layer.post_attention_layernorm.weight.detach()
    return part


def large_layer(enlarger: Enlarger, ffn: int, eps: float, rows: int) -> DrafterConfig:
    """Sizes of the large target's layers; rows: of the small drafter's rotations."""
    config = enlarger.config
    return DrafterConfig(
        hidden=config.dim, heads=config.n_head, ffn=ffn, vocabulary=config.vocab_size,
        max_length=rows, norm_eps=eps * enlarger.small_dim / config.dim, grid=config.grid,
        prompt_length=config.cls_token_num,
    )  # fmt: skip


def enlarged_eagle3(
    entry: Mapping[str, Any], module: torch.jit.ScriptModule, small: Weights, enlarger: Enlarger,
    head: Tensor, length: int, known: int,
) -> BundleModule:  # fmt: skip
    """Its draft vocabulary are the codes that are drawn."""
    config, dim, layers = enlarger.config, enlarger.small_dim, entry["feature_layers"]
    torch.manual_seed(2)
    layer = large_layer(enlarger, config.ffn_dim, module.eps, len(small["rotary"]))
    drafter = Eagle3Drafter(Eagle3Config(layer, len(layers) * config.dim, known, tuple(layers)))
    drafter = drafter.bfloat16().requires_grad_(False)
    fill(drafter.embed_tokens.weight, small["embedding"])
    fill(drafter.fc.weight.view(config.dim, -1, config.dim), small["fc"].view(dim, -1, dim))
    fill(drafter.lm_head.weight, small["head"])
    middle, attention = drafter.midlayer, drafter.midlayer.self_attn
    norms = {
        "token_norm": middle.input_layernorm,
        "feature_norm": middle.hidden_norm,
        "layer.attention_norm": middle.post_attention_layernorm,
        "norm": drafter.norm,
    }
    for name, norm in norms.items():
        enlarger.norm(norm, small[name.removeprefix("layer.")])
    halves = small["wqkv"].view(-1, 2, dim).unbind(1)  # what reads embeddings, what reads features
    joined = zip(*(enlarger.projections(half) for half in halves))
    for linear, parts in zip((attention.q_proj, attention.k_proj, attention.v_proj), joined):
        linear.weight.copy_(torch.cat(parts, 1))
    attention.o_proj.weight.copy_(enlarger.output(small["wo"]))
    for linear, part in zip((middle.mlp.gate_proj, middle.mlp.up_proj), small["w13"].chunk(2)):
        fill(linear.weight[: len(part)], part)
    fill(middle.mlp.down_proj.weight, small["w2"])
    manifest = {
        "cache": {"max_length": length - SPARE_POSITIONS},
        "tokens": {"first_image_id": 0},
        "target": {"head": len(head)},
        "prompt": {"kind": "text_features"},
    }
    made = eagle3_part(drafter, None, manifest)
    made.module.token_norm = norms["token_norm"].weight.detach()
    made.module.feature_norm = norms["feature_norm"].weight.detach()
    made.module.norm = norms["norm"].weight.detach()
    made.module.layer.attention_norm = norms["layer.attention_norm"].weight.detach()
    return made


class EnlargedFlash(FlashModule):
    """A drafter whose codes from `known` on are never drawn."""

    def __init__(self, flash: Flash, head: Tensor, known: int) -> None:
        super().__init__(flash, head)
        self.known: int = known

    def logits(self, hidden: Tensor) -> Tensor:
        """hidden [S,R,H] -> [S,R,V]."""
        return only_known(lamplighter.linear(hidden, self.head, self.vocabulary), self.known)


def enlarged_flash(
    entry: Mapping[str, Any], module: torch.jit.ScriptModule, small: Weights, enlarger: Enlarger,
    head: Tensor, length: int, known: int,
) -> BundleModule:  # fmt: skip
    """As wide between its products as four times the features, as published."""
    config, dim = enlarger.config, enlarger.small_dim
    groups, count, width = entry["kv_heads"], entry["heads"], enlarger.small_head
    torch.manual_seed(3)
    layer = large_layer(enlarger, 4 * config.dim, 1e-6, len(small["rotary"]))
    layer = replace(layer, kv_heads=groups)
    flash = Flash(FlashConfig(layer, count, entry.get("queries", 0), entry.get("window", 0)))
    flash = flash.bfloat16().requires_grad_(False)
    fill(flash.embed_tokens.weight, small["embedding"])
    fill(flash.fc.weight.view(config.dim, 2, config.dim), small["fc"].view(dim, 2, dim))
    fill(flash.fc.bias, small["fc_bias"])
    if flash.config.queries:
        fill(flash.queries, small["queries"])
    own = flash.layers
    heads = small["wo"].shape[1] // groups // width
    rows = [heads * width, (heads * (groups - 1)) * width, groups * width, groups * width]
    for part in ("weight", "bias"):
        name = {"weight": "wqkv", "bias": "qkv_bias"}[part]
        q, _, k, v = small[name].split(rows)  # q stands there once for each group
        for linear, block in ((own.q_proj, q), (own.k_proj, k), (own.v_proj, v)):
            into = getattr(linear, part)
            into = into.view(-1, config.head_dim, *into.shape[1:])
            fill(into[: block.shape[0] // width], block.view(-1, width, *block.shape[1:]))
    output = own.o_proj.weight.view(config.dim, -1, config.head_dim)
    fill(output, small["wo"].view(dim, -1, width)[:, :heads])
    fill(own.o_proj.bias, small["wo_bias"])
    inner, outer = own.ar_proj[0], own.ar_proj[2]
    fill(inner.weight[: len(small["inner"])], small["inner"])
    fill(inner.bias, small["inner_bias"])
    fill(outer.weight.view(count, config.dim, -1), small["outer"].view(count, dim, -1))
    fill(outer.bias.view(count, -1), small["outer_bias"].view(count, -1))
    make = partial(EnlargedFlash, known=known)
    return flash_part(flash, head, length, Storage(torch.bfloat16), make)


class EnlargedHeads(HeadsModule):
    """Heads whose codes from `known` on are never drawn."""

    def __init__(self, heads: Heads, known: int) -> None:
        super().__init__(heads)
        self.known: int = known

    @torch.jit.export
    def heads(self, hidden: Tensor) -> Tensor:
        """hidden [S,1,H] -> [S,K,V]."""
        return only_known(torch.cat([head(hidden) for head in self.all], 1), self.known)


def enlarged_medusa(
    entry: Mapping[str, Any], module: torch.jit.ScriptModule, small: Weights, enlarger: Enlarger,
    head: Tensor, length: int, known: int,
) -> BundleModule:  # fmt: skip
    blocks = sum(name.startswith("all.0.blocks.") and name.endswith("weight") for name in small)
    config = HeadsConfig(enlarger.config.dim, len(head), entry["heads"], blocks)
    heads = Heads(config).bfloat16().requires_grad_(False)
    for number, own in enumerate(heads):
        for i in range(blocks):
            fill(own[i].linear.weight, small[f"all.{number}.blocks.{i}.weight"])
            fill(own[i].linear.bias, small[f"all.{number}.blocks.{i}.bias"])
        fill(own[-1].weight, small[f"all.{number}.out"])
    made = heads_part(heads, Storage(torch.bfloat16), {})
    return replace(made, module=EnlargedHeads(heads, known).bfloat16())


class EnlargedSpeculator(SpeculatorModule):
    """A speculator whose codes from `known` on are never drawn."""

    def __init__(self, speculator: Speculator, known: int) -> None:
        super().__init__(speculator, 0, speculator.config.vocabulary)
        self.known: int = known

    @torch.jit.export
    def logits(self, state: Tensor, number: Tensor) -> Tensor:
        """state [S,R,I] after step `number` -> [S,R,V]."""
        index = int(number)
        i = 0
        for one in self.steps:
            if i == index:
                return only_known(one.logits(state), self.known)
            i += 1
        return state


def enlarged_mlp(
    entry: Mapping[str, Any], module: torch.jit.ScriptModule, small: Weights, enlarger: Enlarger,
    head: Tensor, length: int, known: int,
) -> BundleModule:  # fmt: skip
    """The archive's embedding holds the weight of tokens; norms count the further channels."""
    dim, steps = enlarger.config.dim, entry["heads"]
    speculator = Speculator(SpeculatorConfig(dim, len(head), steps)).bfloat16()
    speculator = speculator.requires_grad_(False)
    ratio = speculator.config.token_weight / speculator.config.state_weight
    for number in range(steps):
        name = f"steps.{number}"
        fill(speculator.emb[number].weight, small[f"{name}.emb"].float() / ratio)
        fill(speculator.proj[number].weight, small[f"{name}.proj"])
        fill(speculator.head[number].weight, small[f"{name}.head"])
        fill(speculator.ln[number].bias, small[f"{name}.bias"])
        enlarger.norm(speculator.ln[number], small[f"{name}.weight"])
    manifest = {"tokens": {"first_image_id": 0}, "target": {"head": len(head)}}
    made = speculator_part(speculator, Storage(torch.bfloat16), manifest)
    large = EnlargedSpeculator(speculator, known).bfloat16()
    for number, step in enumerate(large.steps):
        step.weight = speculator.ln[number].weight.detach()
        step.eps = NORM_EPS * enlarger.small_dim / dim
    return replace(made, module=large)


class EnlargedRefiner(RefinerModule):
    """The same of a refiner, whose inner width stays: a correction of the same rank."""

    def __init__(self, refiner: Refiner, known: int) -> None:
        super().__init__(refiner)
        self.known: int = known

    @torch.jit.export
    def logits(self, state: Tensor) -> Tensor:
        """state [I,1,K] -> [I,1,V]."""
        drawn = lamplighter.linear(state, self.head, self.codes) + self.head_bias
        return only_known(drawn, self.known)


def enlarged_refiner(
    entry: Mapping[str, Any], module: torch.jit.ScriptModule, small: Weights, enlarger: Enlarger,
    head: Tensor, length: int, known: int,
) -> BundleModule:  # fmt: skip
    inner, width = small["head"].shape[1], small["embedding"].shape[1]
    refiner = Refiner(RefinerConfig(enlarger.config.dim, len(head), inner, width)).bfloat16()
    refiner = refiner.requires_grad_(False)
    fill(refiner.embedding.weight, small["embedding"][:known])
    refiner.embedding.weight[-1] = small["embedding"][known]
    fill(refiner.hidden.weight, small["hidden"])
    refiner.hidden.bias.copy_(small["hidden_bias"])
    for part, name in (
        (refiner.stale, "stale_in"),
        (refiner.token, "token_in"),
        (refiner.state, "state"),
    ):
        part.weight.copy_(small[name])
    fill(refiner.head.weight, small["head"])
    fill(refiner.head.bias, small["head_bias"])
    made = refiner_part(refiner, Storage(torch.bfloat16))
    return replace(made, module=EnlargedRefiner(refiner, known).bfloat16())
