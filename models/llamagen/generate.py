"""Eager sampling from the plain GPT with key/value caching: the reference for speed and tokens."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from .gpt import GPT


def filter_logits(logits: Tensor, temperature: float, top_k: int, top_p: float) -> Tensor:
    """Probabilities after temperature, top-k (ties survive) and top-p, in the official order."""
    logits = logits / max(temperature, 1e-5)
    if top_k > 0:
        kth = torch.topk(logits, min(top_k, logits.shape[-1])).values[..., -1:]
        logits = logits.masked_fill(logits < kth, -torch.inf)
    if top_p < 1.0:
        ordered, order = logits.sort(descending=True)
        probabilities = ordered.softmax(-1)
        drop = probabilities.cumsum(-1) - probabilities > top_p
        logits = logits.masked_fill(drop.scatter(-1, order, drop), -torch.inf)
    return logits.softmax(-1)


class EagerCache:
    """Keys and values of every layer, allocated once; hides padded prefix columns."""

    def __init__(self, model: GPT, rows: int, length: int, mask: Tensor | None) -> None:
        config = model.config
        weight = model.output.weight
        shape = (config.n_layer, rows, config.n_kv_head, length, config.head_dim)
        self.keys = weight.new_zeros(shape)
        self.values = weight.new_zeros(shape)
        self.length = 0
        self.hidden: Tensor | None = None
        first = config.cls_token_num if mask is None else mask.shape[1]
        self.prefill = model.attention_bias(mask, first)
        if mask is not None and not bool(mask.all()):
            columns = F.pad(mask.bool(), (0, length - mask.shape[1]), value=True)
            hidden = torch.zeros(columns.shape, device=mask.device)
            self.hidden = hidden.masked_fill_(~columns, -torch.inf)[:, None, None]

    def bias(self, rows: int) -> Tensor | None:
        """Additive bias for the next `rows` rows: the prefix at first, then single tokens."""
        if self.length == 0:
            return self.prefill
        return None if self.hidden is None else self.hidden[..., : self.length + rows]


@torch.inference_mode()
def generate(
    model: GPT,
    cond: Tensor,
    mask: Tensor | None = None,
    cfg_scale: float = 1.0,
    temperature: float = 1.0,
    top_k: int = 0,
    top_p: float = 1.0,
    tokens: int | None = None,
    generator: torch.Generator | None = None,
) -> Tensor:
    """Samples image tokens int64 [B, tokens] with key/value caching (default: all tokens).

    cond and mask as in forward. cfg_scale > 1 adds the null condition of every image as
    rows of the same batch. Prefix columns that are padding in every row are not computed.
    """
    images = cond.shape[0]
    count = model.config.tokens if tokens is None else tokens
    guided = cfg_scale > 1.0
    if guided:
        cond = torch.cat([cond, model.unconditional(cond)])
        mask = None if mask is None else torch.cat([mask, mask])
    prefix = model.embed_condition(cond)
    skipped = 0 if mask is None else int(mask.bool().any(0).int().argmax())
    prefix, width = prefix[:, skipped:], prefix.shape[1] - skipped
    bias = None if mask is None else mask[:, skipped:]
    cache = EagerCache(model, prefix.shape[0], width + count, bias)
    logits = step(model, prefix, skipped, cache)
    sampled: list[Tensor] = []
    for token in range(count):
        if guided:
            c, u = logits[:images], logits[images:]
            logits = u + (c - u) * cfg_scale
        probabilities = filter_logits(logits, temperature, top_k, top_p)
        sampled.append(torch.multinomial(probabilities, 1, generator=generator))
        if token + 1 < count:
            ids = torch.cat([sampled[-1], sampled[-1]]) if guided else sampled[-1]
            position = model.config.cls_token_num + token
            logits = step(model, model.tok_embeddings(ids), position, cache)
    return torch.cat(sampled, 1)


def step(model: GPT, x: Tensor, position: int, cache: EagerCache) -> Tensor:
    """fp32 logits [S,vocab] of the last row of x, which starts at `position`."""
    length = x.shape[1]
    rotation = model.rotation[position : position + length]
    bias = cache.bias(length)
    for layer, keys, values in zip(model.layers, cache.keys, cache.values):
        x = layer.step(x, rotation, keys, values, cache.length, bias)
    cache.length += length
    return model.output(model.norm(x[:, -1])).float()
