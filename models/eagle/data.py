"""Training data of a drafter: pictures drawn by a bundle's target, and its features of them.

    python -m models.eagle.data --bundle DIR --captions FILE --out FOLDER --images 8192

draws one picture per line of FILE (a caption; a number for a bundle of classes) with the engine's
command, at temperature 1 and the bundle's other sampling defaults, and runs the target over the tokens.
FOLDER then holds

    captions.txt            the captions used
    codes-k.json            image tokens of shard k as `lamplighter generate --save-codes` writes them
    features-k.safetensors  features bfloat16 [n, P, L, F], codes int32 [n, M], valid int32 [n, P],
                            and of prompts of tokens: ids int32 [n, P, L]; with --layers, inner
                            bfloat16 [n, P, L, layers * H]: what these `layers` of the target get

for shards of SHARD pictures. P = 2 when the bundle guides (conditional, unconditional), else 1. The M
codes of a picture hold -1 for the end of a row, which the target is fed but never asked for. The
L = prompt length + M - 1 rows are those of the prompt, aligned at its end (the last `valid` of them
count, the others are zero), and of the picture's tokens 0 .. M - 2; `ids` has the id behind each. A file
exists only when complete, so the command may be stopped and run again.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch
from torch import Tensor

from models.eagle.config import DrafterConfig
from models.eagle.features import (
    Ids,
    TargetModel,
    engine_requests,
    load_target,
    next_ids,
    pictures_at_once,
    prompt_ids,
    run_program,
    target_features,
    with_row_ends,
)
from models.eagle.losses import Batch, make_batch
from models.export import checkpoint
from models.export.checkpoint import ExportError
from models.export.command import run_command
from models.export.drafters.files import read_manifest
from models.tensor_file import TensorFile

BUILD = Path(__file__).resolve().parents[2] / "build"
SHARD = 256
FIELDS = ("features", "codes", "valid", "ids", "inner")
SEED = 1_000_000  # picture i of a data set is drawn with seed SEED + i


def demo_captions(count: int) -> list[str]:
    """Captions of the demo model's training scenes; none that its evaluation asks for."""
    import numpy as np

    from models.demo.render.captions import caption
    from models.demo.training.classifier import held_out_scenes
    from models.demo.training.data import held_out, scene_of

    rng = np.random.default_rng(2024)
    asked = {caption(scene, rng) for _, scene in held_out_scenes(0, 1000)}
    rng = np.random.default_rng([11, 1])
    captions: list[str] = []
    seed = 0
    while len(captions) < count:
        seed += 1
        if not held_out(np.array([seed])).any():
            text = caption(scene_of(seed), rng)
            if text not in asked:
                captions.append(text)
    return captions


def draw_codes(
    model: TargetModel, captions: list[str], first: int, out: Path, binary: Path
) -> None:
    """Has the engine draw the captions, pictures first, first + 1, ..., and keeps the tokens."""
    with tempfile.TemporaryDirectory() as folder:
        prompts = Path(folder) / "prompts.jsonl"
        requests = engine_requests(model, captions)
        prompts.write_text("\n".join(requests) + "\n", encoding="utf-8")
        partial = Path(folder) / "codes.json"
        command = [binary, "generate", "-q", "-m", model.bundle, "--prompt-file", prompts]
        command += ["-o", f"{folder}/", "--save-codes", partial, "--no-metadata"]
        command += ["--temperature", 1, "--seed", SEED + first, "--batch-size", 8, "-t", 1]
        run_program(command)
        moved = out.with_name(out.name + ".partial")
        shutil.move(partial, moved)
        os.replace(moved, out)


def read_codes(path: Path) -> Tensor:
    """Image tokens int64 [n, N] of a codes file."""
    pictures = json.loads(path.read_text(encoding="utf-8"))["pictures"]
    return torch.tensor([picture["codes"] for picture in pictures])


def make_shard(
    model: TargetModel, codes: Tensor, prompts: list[list[Ids]], path: Path,
    layers: Sequence[int] = (),
) -> None:  # fmt: skip
    """Writes the features of one shard of codes [n, N]; memory holds those of one pass."""
    codes = with_row_ends(model, codes)
    pictures, rows, width = len(codes), model.prompt_length + model.tokens - 1, model.width
    shape = (pictures, model.sequences, rows)
    layout: dict[str, tuple[torch.dtype, tuple[int, ...]]] = {
        "features": (torch.bfloat16, (*shape, width)),
        "codes": (torch.int32, codes.shape),
        "valid": (torch.int32, shape[:2]),
    }
    whole = {"codes": codes.int()}
    if layers:
        layout["inner"] = torch.bfloat16, (*shape, len(layers) * width)
        layout["layers"] = torch.int64, (len(layers),)
        whole["layers"] = torch.tensor(list(layers))
    if model.prompt_kind == "tokens":
        layout["ids"] = torch.int32, shape
        whole["ids"] = next_ids(model, codes, prompts).int()
    order = sorted(range(pictures), key=lambda i: len(prompts[i][0]))  # passes with few gaps
    with TensorFile(path, layout) as file:
        for name, tensor in whole.items():
            file.write(name, tensor)
        for part in torch.tensor(order).split(pictures_at_once(16, model.cached)):
            places = part.tolist()
            found = target_features(model, codes[part], [prompts[i] for i in places], layers)
            for place, features, valid in zip(places, found[0].bfloat16(), found[1].int()):
                file.write("valid", valid, place)
                file.write("features", features[..., :width], place)
                if layers:
                    file.write("inner", features[..., width:], place)


def shard_path(folder: Path, kind: str, shard: int) -> Path:
    """Path of one file; kind is codes or features."""
    suffix = {"codes": "json", "features": "safetensors"}[kind]
    return folder / f"{kind}-{shard:05d}.{suffix}"


def load_shards(folder: Path) -> list[dict[str, Tensor]]:
    """All finished shards, in order; the tensors are mapped, not read."""
    paths = sorted(folder.glob("features-?????.safetensors"))
    return [checkpoint.read_file(path) for path in paths]


class Pictures:
    """Shards of a data set; the last pictures are held out."""

    def __init__(self, folder: Path, config: DrafterConfig, held_out: int) -> None:
        self.folder, self.config, self.held_out = folder, config, held_out
        self.shards: list[dict[str, Tensor]] = []
        self.refresh()

    def refresh(self) -> None:
        """Takes in the shards that exist by now; the held-out pictures stay those of shard 0."""
        self.shards = load_shards(self.folder)
        if not self.shards:
            raise ExportError(
                f"{self.folder}: got no features, expected those of models.eagle.data"
            )
        size = len(self.shards[0]["codes"])
        if self.held_out >= size:
            raise ExportError(
                f"{self.folder}: got {self.held_out} pictures to hold out, expected fewer than the "
                f"{size} of the first shard", 2,
            )  # fmt: skip

    def __len__(self) -> int:
        return sum(len(shard["codes"]) for shard in self.shards) - self.held_out

    def batch(self, pictures: list[tuple[int, int]]) -> Batch:
        """Pictures (shard, row); features in bf16 as stored."""
        names = [name for name in FIELDS if name in self.shards[0]]
        parts = {
            name: torch.stack([self.shards[s][name][i] for s, i in pictures]) for name in names
        }
        return make_batch(
            parts["features"].float(), parts["codes"], parts["valid"], self.config.prompt_length,
            parts.get("ids", self.config.prompt_id),
            parts["inner"].float() if "inner" in parts else None,
        )  # fmt: skip

    def held_out_batches(self) -> Iterator[Batch]:
        """Of pictures whose rows' biases over all rows memory holds at a time."""
        _, pairs, rows, _ = self.shards[0]["features"].shape
        size = pictures_at_once(8, pairs * rows * rows)
        for first in range(0, self.held_out, size):
            yield self.batch([(0, i) for i in range(first, min(first + size, self.held_out))])

    def batches(self, size: int, generator: torch.Generator) -> Iterator[Batch]:
        """Endless passes in random order."""
        return map(self.batch, self.places(size, generator))

    def places(self, size: int, generator: torch.Generator) -> Iterator[list[tuple[int, int]]]:
        """The pictures (shard, row) of the batches, all of them where there are fewer; every pass sees the shards
        there are by then."""
        while True:
            self.refresh()
            places = [
                (s, i)
                for s, shard in enumerate(self.shards)
                for i in range(self.held_out if s == 0 else 0, len(shard["codes"]))
            ]
            order = torch.randperm(len(places), generator=generator).tolist()
            together = min(size, len(order))
            for first in range(0, len(order) - together + 1, together):
                yield [places[k] for k in order[first : first + together]]


def captions_of(source: str, most: int) -> list[str]:
    """The first lines of a file that hold something, or the demo's own captions."""
    if source == "demo":
        return demo_captions(most)
    return [line for line in read_lines(Path(source)) if line.strip()][:most]


def prepare_captions(folder: Path, source: str, images: int) -> list[str]:
    """The captions of the data set; on a later call they must be the same."""
    captions = captions_of(source, images)
    kept = folder / "captions.txt"
    if kept.exists():
        before = kept.read_text(encoding="utf-8").splitlines()
        common = min(len(before), len(captions))
        if before[:common] != captions[:common]:
            raise ExportError(f"{kept}: holds other captions than {source}; use another folder", 7)
        if common == len(captions):
            return captions
    folder.mkdir(parents=True, exist_ok=True)
    kept.write_text("\n".join(captions) + "\n", encoding="utf-8")
    return captions


def read_lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise ExportError(f"{path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ExportError(f"{path}: expected UTF-8: {error}") from error


def make_data(options: argparse.Namespace) -> None:
    torch.set_num_threads(1)
    read_manifest(options.bundle)  # an error in time: the captions are written before it is loaded
    captions = prepare_captions(options.out, options.captions, options.images)
    model = load_target(options.bundle, options.size)
    for shard, first in enumerate(range(0, len(captions), SHARD)):
        part = captions[first : first + SHARD]
        codes, features = (shard_path(options.out, k, shard) for k in ("codes", "features"))
        if not codes.exists():
            draw_codes(model, part, first, codes, options.build / "lamplighter")
        if not features.exists():
            prompts = prompt_ids(model, part, options.build)
            make_shard(model, read_codes(codes), prompts, features, options.layers)
        print(f"shard {shard}: {first + len(part)} pictures", flush=True)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m models.eagle.data", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--bundle", type=Path, required=True)
    parser.add_argument("--captions", required=True, help="a file, or demo: the demo's own")
    parser.add_argument("--out", type=Path, required=True, help="folder of the data set")
    parser.add_argument("--images", type=int, default=8192)
    parser.add_argument("--size", metavar="WIDTHxHEIGHT", help="default: the bundle's first")
    parser.add_argument(
        "--layers", type=int, nargs="+", default=[], help="of the target, for EAGLE-3"
    )
    parser.add_argument("--build", type=Path, default=BUILD, help="folder of the programs")
    options = parser.parse_args(arguments)
    return run_command(lambda: make_data(options))


if __name__ == "__main__":
    sys.exit(main())
