"""The Python interface of the engine: from prompts to images, codes and statistics."""

from __future__ import annotations

import inspect
import json
import keyword
import logging
import os
import secrets
import threading
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from . import _native
from .error import USAGE, Error
from .keep import Kept, Region, continued, on_white
from .result import Description, Result, Statistics

_log = logging.getLogger("lamplighter")


def methods() -> dict[str, str]:
    """All decoding methods with what they do, the baseline first. `auto` is the fastest lossless one on this machine."""
    return dict(_native.methods)


def option_meanings() -> dict[str, str]:
    """All options of methods with what they do and the values that they take."""
    return {
        name: meaning + (f" ({', '.join(choices)})" if choices else "")
        for name, _, meaning, choices in _native.options
    }


class TextToImage:
    """Generates images with one bundle. Arguments are the long flags of `lamplighter generate` with underscores.

    Raises Error when the bundle or the device cannot be used.
    """

    def __init__(
        self,
        bundle: str | os.PathLike[str],
        *,
        device: str = "auto",
        dtype: str = "auto",
        cache_dtype: str = "auto",
        threads: int = 0,
        batch_size: int = 4,
        no_graph: bool = False,
        skip_checksums: bool = False,
    ) -> None:
        options = _native.RuntimeOptions()
        options.device, options.dtype, options.cache_dtype = device, dtype, cache_dtype
        options.threads, options.batch_size = threads, batch_size
        options.graph, options.verify_checksums = not no_graph, not skip_checksums
        self._engine = _native.Engine(os.fspath(bundle), options, _log.info)
        self._lock = threading.Lock()
        self._generating: int | None = None  # the thread that generates

    def __repr__(self) -> str:
        return f"<TextToImage {self.model} on {self.device} in {self.dtype}>"

    @property
    def model(self) -> str:
        """Name of the bundle."""
        return self._engine.model

    @property
    def device(self) -> str:
        """cpu, cuda:0, ..."""
        return self._engine.device

    @property
    def dtype(self) -> str:
        """fp32, bf16, fp16, int8 or int4."""
        return self._engine.dtype

    def generate(
        self,
        prompts: str | int | Sequence[str | int],
        *,
        method: str | None = None,
        seed: int | Sequence[int] = 42,
        cfg_scale: float | None = None,
        temperature: float | None = None,
        top_k: int | None = None,
        top_p: float | None = None,
        cfg_interval: int | None = None,
        negative_prompt: str | None = None,
        width: int | None = None,
        height: int | None = None,
        keep: Kept | None = None,
        keep_rows: int | None = None,
        keep_tokens: int | None = None,
        region: Region | None = None,
        behind: str | None = None,
        candidates: int | None = None,
        pick: str | None = None,
        fit: str | None = None,
        on_row: Callable[[int, int, NDArray[np.int32]], object] | None = None,
        progress: bool | Callable[[int, int], object] = False,
        **options: Any,
    ) -> list[Result]:
        """Generates an image for every prompt, in their order. Other Python threads run meanwhile.

        What is None is the bundle's or the method's default.

        prompts: captions, or class numbers for class-conditional bundles.
        method: one of `methods()`; None: ar.
        seed: the seed of the first image, from which the others count up; or one seed per image; -1: random.
        keep: another image, of which all images keep tokens: a path or the bytes of a PNG, JPEG or WebP file or of a file
            of codes, an image, pixels in uint8 (height, width, 3 or 4), or codes (rows, columns). All but codes need a
            bundle with an image encoder.
        keep_rows, keep_tokens: how much of it: rows of tokens, or tokens row by row. The rest is generated.
        region: in place of them, what is not kept: x, y, width, height of a rectangle in pixels, rounded outwards to
            whole tokens. The model sees what lies above and to the left of a token, not what comes later.
        behind: what lies right of the region and below it: keep (None), or redraw, which generates it, too.
        candidates: how often the region is generated (None: once). One of them is picked, by the probability of the
            kept tokens that come after the first new one.
        pick: best (None), the likeliest candidate, or sample, one by its probability.
        fit: how a kept image of another size gets the one that is generated: crop (None), pad or stretch.
        on_row: called as on_row(image, row, codes) when a row of tokens is complete, row by row; codes is
            (row + 1, columns), all rows so far, which `decode` turns into an image.
        progress: show a bar on the terminal, or a function that is called as progress(tokens, of_all).
        options: of the method; `option_meanings()` lists them, `lambda_` is lambda.

        Raises Error, exceptions of on_row, and KeyboardInterrupt. An interrupted engine can be used again.
        """
        options |= {
            "method": method, "cfg_scale": cfg_scale, "temperature": temperature, "top_k": top_k, "top_p": top_p,
            "cfg_interval": cfg_interval, "negative_prompt": negative_prompt, "width": width, "height": height,
        }  # fmt: skip
        records = [_record(*generated, options) for generated in _images(prompts, seed)]
        begins = continued(
            keep,
            keep_rows,
            keep_tokens,
            region,
            fit,
            behind=behind,
            candidates=candidates,
            pick=pick,
        )
        results: list[Result] = []

        def on_result(
            _: int, pixels: Any, codes: Any, statistics: Any, tokens: Any, settings: str, notes: list[str]
        ) -> None:  # fmt: skip
            image, cost = Image.fromarray(pixels), Statistics(**statistics)
            results.append(Result(image, codes, cost, tokens, json.loads(settings), notes))

        self._refuse_in_a_run("generate")
        with self._lock:
            self._generating = threading.get_ident()
            try:
                with _Bar(progress) as on_progress:
                    self._engine.generate(records, on_result, on_row, on_progress, *begins)
            finally:
                self._generating = None
        for note in (note for result in results for note in result.warnings):
            warnings.warn(note, stacklevel=2)
        return results

    def _refuse_in_a_run(self, name: str) -> None:
        if self._generating == threading.get_ident():
            raise Error(
                f"{name}: got a call from on_row or on_text, expected one after the run", USAGE
            )

    def decode(self, codes: NDArray[np.int32]) -> Image.Image:
        """Decodes codebook indices, (rows, columns), to an image. Raises Error when they do not fit the decoder."""
        return Image.fromarray(self._engine.decode(codes))

    def encode(
        self,
        image: Image.Image,
        *,
        width: int | None = None,
        height: int | None = None,
        fit: str = "crop",
    ) -> NDArray[np.int32]:
        """Encodes an image as codebook indices, (rows, columns), with the bundle's image encoder.

        width, height: of the image that is encoded; None: its own where the bundle has it, else the bundle's first.
        fit: how an image of another size gets it: crop, pad or stretch, as `lamplighter encode` does.

        Transparent pixels show a white ground. Raises Error for bundles without an image encoder.
        """
        self._refuse_in_a_run("encode")
        with self._lock:
            return self._engine.encode(on_white(image), width, height, fit)

    def describe(
        self,
        image: Image.Image,
        prompt: str = "Describe the image.",
        *,
        method: str | None = None,
        seed: int = 42,
        max_tokens: int | None = None,
        temperature: float | None = None,
        top_k: int | None = None,
        top_p: float | None = None,
        fit: str = "crop",
        on_text: Callable[[str], object] | None = None,
        **options: Any,
    ) -> Description:
        """Answers a question about an image, with bundles that describe images. What is None is the bundle's default.

        method: ar (None), or a lossless one of `methods()` without a drafter: ngram, sjd, ..; with a drafter of
            texts in the bundle also eagle, eagle-2, flash, eagle+sjd, flash+sjd.
        max_tokens: most tokens of the answer; None: 256.
        fit: how an image of another size gets the bundle's first: crop, pad or stretch.
        on_text: called as on_text(more) with what the answer has become longer by.
        options: of the method, as for `generate`.

        Raises Error, exceptions of on_text, and KeyboardInterrupt.
        """
        known = {name for name, *_ in _native.options}
        for name in options:
            if name.removesuffix("_") not in known:
                raise Error(f"{name}: got it for a text, expected an option of methods", USAGE)
        options |= {"method": method, "temperature": temperature, "top_k": top_k, "top_p": top_p}
        record = json.loads(_record("", secrets.randbits(63) if seed == -1 else seed, options))
        del record["prompt"]
        self._refuse_in_a_run("describe")
        with self._lock:
            self._generating = threading.get_ident()
            try:
                *answer, statistics = self._engine.describe(
                    json.dumps(record), prompt, on_white(image), fit, max_tokens, on_text
                )
            finally:
                self._generating = None
        return Description(*answer, Statistics(**statistics))


def _typed(function: Any) -> inspect.Signature:
    """The signature of `generate` with the options of methods in the place of its **options, for completion."""
    types = {"str": "str | None", "int": "int | None", "float": "float | None"}
    signature = inspect.signature(function)
    known = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
    for name, kind, _, _ in _native.options:
        annotation = types.get(kind, "float | Sequence[float] | None")
        word = f"{name}_" if keyword.iskeyword(name) else name
        known.append(
            inspect.Parameter(
                word, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation
            )
        )
    return signature.replace(parameters=known)


TextToImage.generate.__signature__ = _typed(TextToImage.generate)  # type: ignore[attr-defined]


def _images(
    prompts: str | int | Sequence[str | int], seed: int | Sequence[int]
) -> list[tuple[str | int, int]]:
    """Pairs every prompt with its seed."""
    listed = [prompts] if isinstance(prompts, (str, int)) else list(prompts)
    if isinstance(seed, int):
        first = secrets.randbits(63) if seed == -1 else seed
        seeds = [(first + i) % 2**64 if first >= 0 else first for i in range(len(listed))]
    else:
        seeds = list(seed)
    if len(seeds) != len(listed):
        raise Error(f"seed: got {len(seeds)} seeds, expected {len(listed)}: one per prompt", USAGE)
    return list(zip(listed, seeds))


def _record(prompt: str | int, seed: int, options: dict[str, Any]) -> str:
    """Encodes a request as JSON; the engine checks the options and their types."""
    record: dict[str, Any] = {"class" if isinstance(prompt, int) else "prompt": prompt}
    for name in record.keys() | {"seed"}:
        if name in options:
            raise Error(f"{name}: given twice", USAGE)
    record["seed"] = seed
    record |= {name.removesuffix("_"): v for name, v in options.items() if v is not None}
    try:
        return json.dumps(record, allow_nan=False, default=os.fspath)
    except (TypeError, ValueError) as error:
        raise Error(f"options: {error}", USAGE) from None


class _Bar:
    """A context manager that gives a callback for a progress bar, or None."""

    def __init__(self, wanted: bool | Callable[[int, int], object]) -> None:
        self._bar: Any = None
        self._given = wanted if callable(wanted) else None
        if wanted is True:
            from tqdm.auto import tqdm

            self._bar = tqdm(unit="token")

    def __enter__(self) -> Callable[[int, int], object] | None:
        return self._show if self._bar is not None else self._given

    def _show(self, done: int, total: int) -> None:
        self._bar.total = total
        self._bar.update(done - self._bar.n)

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()
