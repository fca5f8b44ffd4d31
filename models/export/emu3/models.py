"""What the models of the class differ in besides their sizes: tags, prompts, trained sizes, defaults."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ..checkpoint import ExportError
from ..common import sampling_entry
from ..settings import Settings

SHORTEST_TEXT = 16  # ids of a prompt's text: a size that leaves fewer does not fit
TRAINED_CELLS = 90 * 90  # of Emu3's images of every shape, as near as rounded sides come to it
MOST_SHAPE = 5  # the longer side by the shorter one
# Rows and columns of Emu3.5's images, the usual ones first.
TRAINED_GRIDS = ((55, 73), (64, 64), (41, 97), (47, 85), (52, 78), (73, 55), (85, 47), (78, 52))
IMAGE = "{boi_token}{{rows}}*{{columns}}{image_wrapper_token}"  # what stands between a text and its image
Grid = Mapping[str, Any]


@dataclass(frozen=True)
class Model:
    """One published model, and models of other sizes that share its form."""

    name: str
    licence: str  # of the weights
    codes: int  # models of other codes say in --config what they were trained on
    downsample: int  # pixels a side of a code
    published: Settings
    tags: Mapping[str, str]  # texts, by what tokenizer_config.json may call otherwise
    text: str  # behind the first id, with tags by name
    negative_text: str
    negative_prompt: str
    after: tuple[str, ...]  # tags behind the last code
    sampling: Mapping[str, Any]
    require_trained: Callable[[Grid], None]


def untrained(grid: Grid, trained: str) -> ExportError:
    size, cells = f"{grid['width']}x{grid['height']}", f"{grid['rows']} x {grid['columns']}"
    return ExportError(f"size {size}: has {cells} codes, the model was trained on {trained}", 2)


def require_area(grid: Grid) -> None:
    """ExportError: the area or the shape is none that Emu3 was trained on."""
    rows, columns = grid["rows"], grid["columns"]
    near = abs(rows * columns - TRAINED_CELLS) <= (rows + columns + 1) / 2
    if not near or max(rows, columns) > MOST_SHAPE * min(rows, columns):
        area = f"about {TRAINED_CELLS} (720x720 pixels) of shapes up to {MOST_SHAPE}:1"
        raise untrained(grid, area)


def require_grid(grid: Grid) -> None:
    """ExportError: the sides are none that Emu3.5 has a name for."""
    if (grid["rows"], grid["columns"]) not in TRAINED_GRIDS:
        sizes = [f"{width}x{height}" for width, height in EMU35.published.sizes]
        raise untrained(grid, f"{', '.join(sizes)} pixels")


TAGS = {
    "bos_token": "<|extra_203|>",
    "boi_token": "<|image start|>",
    "image_wrapper_token": "<|image token|>",
    "eoi_token": "<|image end|>",
}
EMU3 = Model(
    name="Emu3-Gen",
    licence="Apache License 2.0",
    codes=32768,
    downsample=8,
    published=Settings([(720, 720)], 512),
    tags={**TAGS, "eof_token": "<|extra_201|>", "eos_token": "<|extra_204|>"},
    text="{{prompt}}" + IMAGE,
    negative_text="{{prompt}}" + IMAGE,
    negative_prompt=(  # the published script's
        "lowres, bad anatomy, bad hands, text, error, missing fingers, extra digit, fewer digits, cropped, "
        "worst quality, low quality, normal quality, jpeg artifacts, signature, watermark, username, blurry."
    ),
    after=("eof_token", "eoi_token", "eos_token"),
    sampling=sampling_entry(3.0, 2048),  # the published script's
    require_trained=require_area,
)
# Its network begins the image itself; here the prompt does, so that no text can stand in front of it.
EMU35 = Model(
    name="Emu3.5",
    licence="see the model card (code: Apache License 2.0)",
    codes=131072,
    downsample=16,
    published=Settings([(16 * columns, 16 * rows) for rows, columns in TRAINED_GRIDS], 1024),
    tags={**TAGS, "bss_token": "<|extra_100|>"},
    text="You are a helpful assistant for t2i task. USER: {{prompt}} ASSISTANT: {bss_token}"
    + IMAGE,
    negative_text="You are a helpful assistant. USER: {{prompt}} ASSISTANT: {bss_token}" + IMAGE,
    negative_prompt="",
    after=("eoi_token",),
    sampling=sampling_entry(5.0, 5120),  # the published configuration's
    require_trained=require_grid,
)
