from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

version: str
methods: dict[str, str]
options: list[tuple[str, str, str, list[str]]]
error_class: type[Exception] | None

class RuntimeOptions:
    device: str
    dtype: str
    cache_dtype: str
    threads: int
    batch_size: int
    graph: bool
    verify_checksums: bool
    def __init__(self) -> None: ...

class Region:
    def __init__(
        self, x: int, y: int, width: int, height: int, behind: str, candidates: int, pick: str
    ) -> None: ...

class Continued:
    @staticmethod
    def of_file(path: str) -> Continued: ...
    @staticmethod
    def of_bytes(content: bytes) -> Continued: ...
    @staticmethod
    def of_pixels(pixels: NDArray[np.uint8]) -> Continued: ...
    @staticmethod
    def of_codes(codes: NDArray[np.int32]) -> Continued: ...

class Engine:
    def __init__(
        self, bundle: str, options: RuntimeOptions, note: Callable[[str], object]
    ) -> None: ...
    @property
    def model(self) -> str: ...
    @property
    def device(self) -> str: ...
    @property
    def dtype(self) -> str: ...
    def generate(
        self,
        records: list[str],
        on_result: Callable[
            [
                int,
                NDArray[np.uint8],
                NDArray[np.int32],
                dict[str, Any],
                NDArray[np.int64],
                str,
                list[str],
            ],
            object,
        ],
        on_row: Callable[[int, int, NDArray[np.int32]], object] | None,
        on_progress: Callable[[int, int], object] | None,
        continued: Continued | None,
        keep_rows: int | None,
        keep_tokens: int | None,
        region: Region | None,
        fit: str | None,
    ) -> None: ...
    def describe(
        self,
        record: str,
        prompt: str,
        pixels: NDArray[np.uint8],
        fit: str,
        max_tokens: int | None,
        on_text: Callable[[str], object] | None,
    ) -> tuple[str, str, int, list[int], dict[str, Any]]: ...
    def decode(self, codes: NDArray[np.int32]) -> NDArray[np.uint8]: ...
    def encode(
        self, pixels: NDArray[np.uint8], width: int | None, height: int | None, fit: str
    ) -> NDArray[np.int32]: ...
