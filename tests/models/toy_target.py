"""A target whose distribution is simple enough to be learnt in seconds, and images generated from it."""

from __future__ import annotations

from types import SimpleNamespace

import torch
from torch import Tensor

from models.eagle.config import DrafterConfig
from models.eagle.losses import filtered

GRID, PROMPT, TOKENS, VOCABULARY, WIDTH = 4, 3, 16, 12, 16
CONFIG = DrafterConfig(
    hidden=WIDTH, heads=2, ffn=32, vocabulary=VOCABULARY, max_length=PROMPT + TOKENS, grid=GRID,
    prompt_length=PROMPT,
)  # fmt: skip


def toy_model() -> SimpleNamespace:
    """A target whose feature is the embedding of its last token, and whose distribution follows from it."""
    generator = torch.Generator().manual_seed(1)
    return SimpleNamespace(
        embedding=torch.randn(VOCABULARY, WIDTH, generator=generator),
        head=torch.randn(VOCABULARY, WIDTH, generator=generator) * 0.7,
        guidance=2.0,
        manifest={"sampling": {"top_k": 8}, "tokens": {"first_image_id": 0}},
    )


def toy_images(number: int, seed: int) -> dict[str, Tensor]:
    """Images generated from the toy target; the unconditional features are half the conditional ones."""
    model, generator = toy_model(), torch.Generator().manual_seed(seed)
    codes = torch.randint(VOCABULARY, (number, TOKENS), generator=generator)
    for i in range(1, TOKENS):
        logits = 1.5 * model.embedding[codes[:, i - 1]] @ model.head.T
        codes[:, i] = filtered(logits, 8).multinomial(1, generator=generator).squeeze(1)
    prompt = torch.randn(number, PROMPT, WIDTH, generator=generator)
    rows = torch.cat([prompt, model.embedding[codes[:, :-1]]], 1)
    features = torch.stack([rows, rows / 2], 1).bfloat16()
    return {
        "features": features,
        "inner": torch.cat([features, -features], -1),
        "layers": torch.tensor([0, 2]),
        "codes": codes.int(),
        "valid": torch.full((number,), PROMPT).int(),
    }
