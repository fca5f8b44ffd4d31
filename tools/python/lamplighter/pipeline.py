"""A pipeline that is called as those of diffusers are."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import torch
from PIL import Image

from .engine import TextToImage


@dataclass(frozen=True)
class PipelineOutput:
    """Pictures, those of the first prompt first."""

    images: list[Image.Image]


class LamplighterPipeline:
    """LamplighterPipeline(bundle)("a red boat", num_images_per_prompt=2, guidance_scale=4).images"""

    def __init__(self, bundle: str | os.PathLike[str], **runtime: Any) -> None:
        self.engine = TextToImage(bundle, **runtime)

    def __call__(
        self,
        prompt: str | list[str],
        num_images_per_prompt: int = 1,
        guidance_scale: float | None = None,
        generator: torch.Generator | None = None,
        seed: int = 42,
        **options: Any,
    ) -> PipelineOutput:
        """Draws; a generator's initial seed takes the place of `seed`, options are those of TextToImage.generate."""
        prompts = [prompt] if isinstance(prompt, str) else prompt
        repeated = [text for text in prompts for _ in range(num_images_per_prompt)]
        seed = seed if generator is None else generator.initial_seed()
        results = self.engine.generate(repeated, seed=seed, cfg_scale=guidance_scale, **options)
        return PipelineOutput([result.image for result in results])
