"""A pipeline with the calling convention of diffusers."""

from __future__ import annotations

import base64
import difflib
import inspect
import os
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from PIL import Image

from .engine import TextToImage
from .keep import Kept
from .result import Result

_DTYPES = {torch.float32: "fp32", torch.bfloat16: "bf16", torch.float16: "fp16"}
_OUTPUTS = ("pil", "np", "pt")
_OPTIONS = inspect.signature(TextToImage.generate).parameters.keys() - {
    "self", "prompts", "seed", "cfg_scale", "keep", "on_row", "progress"
}  # fmt: skip
# Arguments of diffusers' pipelines that have no meaning here.
_UNUSED = ("num_inference_steps", "eta", "guidance_rescale", "clip_skip")
# Those that would change the image, and what stands in their place.
_UNSUPPORTED = {
    "mask_image": "use image with keep_rows, or with region for a rectangle",
    "strength": "use image with keep_rows: there are no noise levels",
    "latents": "use generator or seed",
    "prompt_embeds": "use prompt",
    "negative_prompt_embeds": "use negative_prompt",
    "timesteps": "there are no noise levels",
    "sigmas": "there are no noise levels",
    "callback": "use callback_on_step_end",
}


@dataclass(frozen=True, repr=False)
class PipelineOutput:
    """Images in the order of the prompts; `output[0]` is `output.images`, as in diffusers."""

    images: Any
    """PIL images, or for "np" and "pt" an array or tensor as in diffusers, with values in [0, 1]."""
    results: list[Result]
    """Codes, statistics and settings of each."""

    def __getitem__(self, index: int) -> Any:
        return (self.images,)[index]

    def __repr__(self) -> str:
        return f"<PipelineOutput of {len(self.results)} images>"

    def _repr_png_(self) -> bytes:
        return self.results[0]._repr_png_()

    def _repr_html_(self) -> str:
        pngs = (base64.b64encode(result._repr_png_()).decode() for result in self.results)
        return "".join(f'<img src="data:image/png;base64,{png}">' for png in pngs)


class Pipeline:
    """Pipeline.from_pretrained("models/demo/bundle")("a red boat", guidance_scale=4).images[0]"""

    def __init__(self, bundle: str | os.PathLike[str], **runtime: Any) -> None:
        """`runtime`: arguments of TextToImage."""
        self._bundle, self._runtime = os.fspath(bundle), runtime
        self._engine: TextToImage | None = None
        self._bar: dict[str, Any] = {}

    @classmethod
    def from_pretrained(
        cls,
        bundle: str | os.PathLike[str],
        torch_dtype: torch.dtype | str | None = None,
        device: torch.device | str | None = None,
        **runtime: Any,
    ) -> Pipeline:
        """A bundle's folder. Dtypes are Torch's or names ("int8"); `runtime` as in TextToImage."""
        return cls(bundle, **runtime).to(*(x for x in (torch_dtype, device) if x is not None))

    def to(self, *places: torch.dtype | torch.device | str) -> Pipeline:
        """Sets device, dtype or both. Weights are loaded again by the next call."""
        for place in places:
            if isinstance(place, torch.dtype):
                if place not in _DTYPES:
                    raise ValueError(f"dtype: got {place}, expected {', '.join(map(str, _DTYPES))}")
                self._runtime["dtype"] = _DTYPES[place]
            elif str(place) in ("auto", "fp32", "bf16", "fp16", "int8", "int4"):
                self._runtime["dtype"] = str(place)
            else:
                self._runtime["device"] = str(place)
        if places:
            self._engine = None
        return self

    def __repr__(self) -> str:
        runtime = "".join(f", {name}={value!r}" for name, value in self._runtime.items())
        return f"Pipeline({self._bundle!r}{runtime})"

    @property
    def engine(self) -> TextToImage:
        """Loads what is not loaded yet."""
        if self._engine is None:
            self._engine = TextToImage(self._bundle, **self._runtime)
        return self._engine

    def set_progress_bar_config(self, **config: Any) -> None:
        """Arguments of tqdm's bar; `disable=True` shows none."""
        self._bar = config

    def __call__(
        self,
        prompt: str | int | Sequence[str | int],
        height: int | None = None,
        width: int | None = None,
        guidance_scale: float | None = None,
        negative_prompt: str | None = None,
        num_images_per_prompt: int = 1,
        generator: torch.Generator | Sequence[torch.Generator] | None = None,
        seed: int = -1,
        image: Kept | None = None,
        output_type: str = "pil",
        callback_on_step_end: Callable[[Pipeline, int, int, dict[str, Any]], object] | None = None,
        **options: Any,
    ) -> PipelineOutput:
        """Generates. Takes what diffusers' pipelines take, and arguments of TextToImage.generate.

        prompt: captions, or class numbers for class-conditional bundles.
        generator: one for all images, or one per image. Each image takes a number from it, so that a
            generator which is used twice gives other images.
        seed: without a generator, as for TextToImage.generate; -1: random.
        image: another image that the images begin with, as `keep` of TextToImage.generate; keep_rows or keep_tokens
            says how much of it is kept.
        output_type: "pil", "np" (images, height, width, 3) or "pt" (images, 3, height, width).
        callback_on_step_end: called as callback(pipeline, tokens, of_all, {}) after target passes.
        """
        if output_type not in _OUTPUTS:
            raise ValueError(f"output_type: got {output_type!r}, expected {', '.join(_OUTPUTS)}")
        known = _known(options)
        prompts = [prompt] if isinstance(prompt, (str, int)) else list(prompt)
        images = [text for text in prompts for _ in range(num_images_per_prompt)]
        results = self.engine.generate(
            images,
            seed=seed if generator is None else _seeds(generator, len(images)),
            cfg_scale=guidance_scale,
            negative_prompt=negative_prompt,
            width=width,
            height=height,
            keep=image,
            progress=self._progress(callback_on_step_end),
            **known,
        )
        return PipelineOutput(_output([result.image for result in results], output_type), results)

    def _progress(self, callback: Any) -> Callable[[int, int], object]:
        from tqdm.auto import tqdm

        bar = tqdm(**({"unit": "token", "leave": False} | self._bar))

        def show(done: int, total: int) -> None:
            bar.total = total
            bar.update(done - bar.n)
            if done >= total:
                bar.close()
            if callback is not None:
                callback(self, done, total, {})

        return show


def _seeds(generator: torch.Generator | Sequence[torch.Generator], count: int) -> list[int]:
    """A seed of every image. The generators move on."""
    given = [generator] * count if isinstance(generator, torch.Generator) else list(generator)
    if len(given) != count:
        raise ValueError(
            f"generator: got {len(given)}, expected one, or one for each of {count} images"
        )
    return [int(torch.randint(2**62, (1,), generator=one, device=one.device)) for one in given]


def _known(options: dict[str, Any]) -> dict[str, Any]:
    """The options that mean something. Raises TypeError for unknown ones."""
    for name in options:
        if name in _UNUSED:
            warnings.warn(
                f"{name} has no effect: an autoregressive model generates token by token",
                stacklevel=3,
            )
        elif name in _UNSUPPORTED:
            if options[name] is None:
                continue
            raise TypeError(f"Pipeline: {name} is not supported; {_UNSUPPORTED[name]}")
        elif name not in _OPTIONS:
            own = inspect.signature(Pipeline.__call__).parameters.keys() - {"self", "options"}
            near = difflib.get_close_matches(name, own | _OPTIONS, 1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise TypeError(f"Pipeline: got an unexpected argument {name!r}{hint}")
    return {name: value for name, value in options.items() if name in _OPTIONS}


def _output(images: list[Image.Image], output_type: str) -> Any:
    if output_type == "pil":
        return images
    pixels = np.stack([np.asarray(image) for image in images]).astype(np.float32) / 255
    return (
        pixels if output_type == "np" else torch.from_numpy(pixels).permute(0, 3, 1, 2).contiguous()
    )
