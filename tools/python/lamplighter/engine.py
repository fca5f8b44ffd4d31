"""The engine as Python sees it: prompts to pictures, codes and statistics."""

from __future__ import annotations

import json
import logging
import os
import secrets
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from . import _native

USAGE = 2  # exit code of the command line for flags

_log = logging.getLogger("lamplighter")


class Error(Exception):
    """What the engine cannot do, in one line; `exit_code` is the command line's (2 usage, 3 input, 4 bundle, ...)."""

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code


_native.error_class = Error


@dataclass(frozen=True)
class Statistics:
    """What one picture cost."""

    tokens: int
    """Image tokens committed."""
    target_passes: int
    """Passes of the target, prefill included."""
    batch: int
    """Most pictures that were drawn side by side with it."""
    step_compression: float
    """Tokens per target pass."""
    acceptance_length: float
    """Tokens per cycle on average, bonus token included."""
    acceptance_lengths: list[int]
    """Tokens of every cycle, bonus token included; without the prefill, which commits the first token."""
    drafted_by_depth: list[int]
    """Tree nodes that were drafted at depth 1, 2, ..."""
    accepted_by_depth: list[int]
    """How often the accepted path reached depth 1, 2, ..."""
    seconds: dict[str, float]
    """Wall-clock seconds of text, prefill, decode and image; draft, score, judge and commit are parts of decode."""


@dataclass(frozen=True)
class Result:
    """A picture."""

    image: Image.Image
    """RGB."""
    codes: NDArray[np.int32]
    """Codebook indices, (rows, columns)."""
    statistics: Statistics
    settings: dict[str, Any]
    """Everything that decides the picture, as picture files carry it: model, seed, method and its options, ..."""


class TextToImage:
    """Draws pictures with one bundle. Arguments are the long flags of `lamplighter generate` with underscores.

    Raises Error when the bundle or the device does not do.
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
        self._drawing: int | None = None  # the thread that draws

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
        seed: int | Sequence[int] = 42,
        on_row: Callable[[int, int, NDArray[np.int32]], object] | None = None,
        progress: bool = False,
        **options: Any,
    ) -> list[Result]:
        """Draws a picture of every prompt, in their order; other threads run meanwhile.

        prompts: captions, or class numbers for bundles of classes.
        seed: of the first picture, the others follow it; or one for each; -1: random.
        on_row: called as on_row(picture, row, codes) when a row of tokens is complete, in the order of the
            rows; codes is (row + 1, columns), all rows so far, which `decode` makes a picture of.
        progress: a bar on the terminal.
        options: method, tree, cfg_scale, temperature, width and what else `lamplighter generate --help` lists
            of sampling and methods; `lambda_` is --lambda. None: not given.

        Raises Error, what on_row raises, and KeyboardInterrupt; a run that is stopped leaves the engine as it was.
        """
        records = [_record(*picture, options) for picture in _pictures(prompts, seed)]
        results: list[Result] = []

        def on_result(_: int, pixels: Any, codes: Any, statistics: Any, settings: str) -> None:
            image = Image.fromarray(pixels)
            results.append(Result(image, codes, Statistics(**statistics), json.loads(settings)))

        if self._drawing == threading.get_ident():
            raise Error("generate: got a call out of on_row, expected one after the run", USAGE)
        with self._lock:
            self._drawing = threading.get_ident()
            try:
                with _Bar(progress) as on_progress:
                    self._engine.generate(records, on_result, on_row, on_progress)
            finally:
                self._drawing = None
        return results

    def decode(self, codes: NDArray[np.int32]) -> Image.Image:
        """The picture of codebook indices, (rows, columns). Raises Error when they do not fit the decoder."""
        return Image.fromarray(self._engine.decode(codes))


def _pictures(
    prompts: str | int | Sequence[str | int], seed: int | Sequence[int]
) -> list[tuple[str | int, int]]:
    """Every prompt with its seed."""
    listed = [prompts] if isinstance(prompts, (str, int)) else list(prompts)
    if isinstance(seed, int):
        first = secrets.randbits(63) if seed == -1 else seed
        seeds = [(first + i) % 2**64 if first >= 0 else first for i in range(len(listed))]
    else:
        seeds = list(seed)
    if len(seeds) != len(listed):
        raise Error(f"seed: got {len(seeds)} seeds, expected {len(listed)}: one a prompt", USAGE)
    return list(zip(listed, seeds))


def _record(prompt: str | int, seed: int, options: dict[str, Any]) -> str:
    """A request in the engine's form, which knows the options and their types."""
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
    """A bar of tokens on the terminal, as a callback; None where none is wanted."""

    def __init__(self, wanted: bool) -> None:
        self._bar: Any = None
        if wanted:
            from tqdm.auto import tqdm

            self._bar = tqdm(unit="token")

    def __enter__(self) -> Callable[[int, int], object] | None:
        return self._show if self._bar is not None else None

    def _show(self, done: int, total: int) -> None:
        self._bar.total = total
        self._bar.update(done - self._bar.n)

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()
