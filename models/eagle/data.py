"""Training data of a drafter: pictures drawn by a bundle's target, and its features of them.

    python -m models.eagle.data --bundle DIR --captions FILE --out FOLDER --images 8192

draws one picture per line of FILE with the engine's command, at temperature 1 and the bundle's other
sampling defaults, and runs the target over the tokens. FOLDER then holds

    captions.txt            the captions used
    codes-k.json            image tokens of shard k as `lamplighter generate --save-codes` writes them
    features-k.safetensors  features bfloat16 [n, P, L, F], codes int32 [n, N], valid int32 [n]

for shards of SHARD pictures. P = 2 when the bundle guides (conditional, unconditional), else 1. The
L = prompt length + N - 1 rows are those of the prompt, aligned at its end (the last `valid` of them
count, the others are zero), and of the image tokens 0 .. N - 2. A file exists only when complete, so
the command may be stopped and run again.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from models import ops
from models.eagle.config import DrafterConfig
from models.eagle.losses import Batch, make_batch

BUILD = Path(__file__).resolve().parents[2] / "build"
SHARD = 256
SEED = 1_000_000  # picture i of a data set is drawn with seed SEED + i


@dataclass
class TargetModel:
    """A bundle's target and text encoder through the operators, in fp32."""

    bundle: Path
    manifest: dict[str, Any]
    target: torch.jit.ScriptModule
    text_encoder: torch.jit.ScriptModule
    head: Tensor  # fp32 [V, F]
    embedding: Tensor  # fp32 [vocabulary, F]

    @property
    def guidance(self) -> float:
        return float(self.manifest["sampling"]["cfg_scale"])

    @property
    def prompt_length(self) -> int:
        return int(self.manifest["prompt"]["length"])

    @property
    def tokens(self) -> int:
        grid = self.manifest["grids"][0]
        return int(grid["rows"] * grid["columns"])


def load_target(bundle: Path) -> TargetModel:
    """Loads a text-to-image bundle whose pictures are plain rows of image tokens."""
    manifest = json.loads((bundle / "manifest.json").read_text(encoding="utf-8"))
    prompt, grid = manifest["prompt"], manifest["grids"][0]
    if prompt["kind"] != "text_features" or prompt["align"] != "end":
        raise ValueError(f"{bundle}: prompt: got {prompt}, expected text features aligned at end")
    if grid["before"] or grid["row_end"] or grid["after"]:
        raise ValueError(f"{bundle}: pictures with tokens between their rows are not supported")
    ops.load()
    loaded = {
        role: torch.jit.load(str(bundle / manifest["modules"][role]["file"])).eval()
        for role in ("target", "text_encoder")
    }
    weights = dict(loaded["target"].named_buffers())
    head, embedding = (weights[name].float().clone() for name in ("head", "embedding"))
    for module in loaded.values():
        module.prepare(torch.zeros(1))
    return TargetModel(bundle, manifest, loaded["target"], loaded["text_encoder"], head, embedding)


def demo_captions(count: int) -> list[str]:
    """Captions of the demo model's training scenes; none that its evaluation asks for."""
    import numpy as np

    from models.demo.captions import caption
    from models.demo.classifier import held_out_scenes
    from models.demo.data import held_out, scene_of

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


def draw_codes(bundle: Path, captions: list[str], first: int, out: Path, binary: Path) -> None:
    """Has the engine draw the captions, pictures first, first + 1, ..., and keeps the tokens."""
    with tempfile.TemporaryDirectory() as folder:
        prompts = Path(folder) / "prompts.txt"
        prompts.write_text("\n".join(captions) + "\n", encoding="utf-8")
        partial = Path(folder) / "codes.json"
        command = [binary, "generate", "-q", "-m", bundle, "--prompt-file", prompts]
        command += ["-o", f"{folder}/", "--save-codes", partial, "--no-metadata"]
        command += ["--temperature", 1, "--seed", SEED + first, "--batch-size", 8, "-t", 1]
        subprocess.run([str(part) for part in command], check=True, stdout=subprocess.DEVNULL)
        moved = out.with_name(out.name + ".partial")
        shutil.move(partial, moved)
        os.replace(moved, out)


def read_codes(path: Path) -> Tensor:
    """Tokens int64 [n, N] of a codes file."""
    pictures = json.loads(path.read_text(encoding="utf-8"))["pictures"]
    return torch.tensor([picture["codes"] for picture in pictures])


def tokenize(model: TargetModel, captions: list[str], binary: Path) -> list[list[int]]:
    """Ids of the captions as the engine's tokenizer gives them."""
    settings = model.manifest["tokenizer"]
    requests = [json.dumps({"text": c, "cleaning": settings["cleaning"]}) for c in captions]
    parts = [binary, model.bundle / settings["file"], settings["max_length"], settings["extra_ids"]]
    done = subprocess.run(
        [str(part) for part in parts],
        input="\n".join(requests) + "\n",
        capture_output=True,
        text=True,
        check=True,
    )
    return [json.loads(line)["ids"] for line in done.stdout.splitlines()]


@torch.inference_mode()
def target_features(model: TargetModel, codes: Tensor, ids: list[list[int]]) -> Tensor:
    """Features fp32 [n, P, L, F] of tokens int64 [n, N] under captions of one length."""
    count, valid = len(ids), len(ids[0])
    length, tokens = model.prompt_length, codes.shape[1]
    captions = torch.zeros(count, length, dtype=torch.int64)
    captions[:, :valid] = torch.tensor(ids)
    mask = (torch.arange(length) < valid).long().expand(count, length).contiguous()
    features = model.text_encoder.encode(captions, mask)
    prompts = [model.target.embed_condition(features, mask)]
    if model.guidance > 1:
        prompts.append(model.target.embed_unconditional(mask))
    sequences = count * len(prompts)
    prefix = torch.stack(prompts, 1).flatten(0, 1)[:, :valid]
    first = model.manifest["tokens"]["first_image_id"]
    image = model.target.embed(codes[:, :-1] + first).repeat_interleave(len(prompts), 0)
    x = torch.cat([prefix, image], 1).contiguous()
    rows = x.shape[1]
    positions = torch.arange(length - valid, length - valid + rows)
    shape = model.manifest["cache"]
    cache = torch.zeros(shape["layers"], 2, sequences, shape["kv_heads"], rows, shape["head_dim"])
    empty = torch.empty(0, dtype=torch.int64)
    lengths = torch.zeros(sequences, dtype=torch.int64)
    _, out = model.target.forward(
        x, positions.expand(sequences, rows).contiguous(), empty, lengths, cache
    )
    full = torch.zeros(sequences, length + tokens - 1, out.shape[2])
    full[:, length - valid :] = out
    return full.view(count, len(prompts), *full.shape[1:])


def make_shard(model: TargetModel, codes: Tensor, ids: list[list[int]], path: Path) -> None:
    """Writes the features of one shard; captions of equal length share a pass."""
    valid = torch.tensor([len(row) for row in ids])
    features: Tensor | None = None
    for length in valid.unique().tolist():
        for rows in (valid == length).nonzero().flatten().split(16):
            part = target_features(model, codes[rows], [ids[int(i)] for i in rows])
            if features is None:
                features = torch.zeros(len(ids), *part.shape[1:], dtype=torch.bfloat16)
            features[rows] = part.bfloat16()
    assert features is not None
    partial = path.with_suffix(".partial")
    save_file({"features": features, "codes": codes.int(), "valid": valid.int()}, partial)
    os.replace(partial, path)


def shard_path(folder: Path, kind: str, shard: int) -> Path:
    """Path of one file; kind is codes or features."""
    suffix = {"codes": "json", "features": "safetensors"}[kind]
    return folder / f"{kind}-{shard:05d}.{suffix}"


def load_shards(folder: Path) -> list[dict[str, Tensor]]:
    """All finished shards, in order; the tensors are mapped, not read."""
    return [load_file(path) for path in sorted(folder.glob("features-?????.safetensors"))]


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
            raise FileNotFoundError(f"{self.folder}: holds no features; run models.eagle.data")
        size = len(self.shards[0]["codes"])
        if self.held_out >= size:
            raise ValueError(f"{self.folder}: the first shard has {size} pictures to hold out")

    def __len__(self) -> int:
        return sum(len(shard["codes"]) for shard in self.shards) - self.held_out

    def batch(self, pictures: list[tuple[int, int]]) -> Batch:
        """Pictures (shard, row); features in bf16 as stored."""
        parts = [
            [self.shards[s][k][i] for s, i in pictures] for k in ("features", "codes", "valid")
        ]
        features, codes, valid = (torch.stack(part) for part in parts)
        return make_batch(
            features.float(), codes, valid, self.config.prompt_length, self.config.prompt_id
        )

    def held_out_batches(self, size: int) -> Iterator[Batch]:
        for first in range(0, self.held_out, size):
            yield self.batch([(0, i) for i in range(first, min(first + size, self.held_out))])

    def batches(self, size: int, generator: torch.Generator) -> Iterator[Batch]:
        """Endless passes in random order; every pass sees the shards there are by then."""
        while True:
            self.refresh()
            places = [
                (s, i)
                for s, shard in enumerate(self.shards)
                for i in range(self.held_out if s == 0 else 0, len(shard["codes"]))
            ]
            order = torch.randperm(len(places), generator=generator).tolist()
            for first in range(0, len(order) - size + 1, size):
                yield self.batch([places[k] for k in order[first : first + size]])


def prepare_captions(folder: Path, source: str, images: int) -> list[str]:
    """The captions of the data set; on a later call they must be the same."""
    if source == "demo":
        captions = demo_captions(images)
    else:
        lines = Path(source).read_text(encoding="utf-8").splitlines()
        captions = [line for line in lines if line.strip()][:images]
    kept = folder / "captions.txt"
    if kept.exists():
        before = kept.read_text(encoding="utf-8").splitlines()
        common = min(len(before), len(captions))
        if before[:common] != captions[:common]:
            raise ValueError(f"{kept}: holds other captions than {source}; use another folder")
        if common == len(captions):
            return captions
    folder.mkdir(parents=True, exist_ok=True)
    kept.write_text("\n".join(captions) + "\n", encoding="utf-8")
    return captions


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bundle", type=Path, required=True)
    parser.add_argument("--captions", required=True, help="a file, or demo: the demo's own")
    parser.add_argument("--out", type=Path, required=True, help="folder of the data set")
    parser.add_argument("--images", type=int, default=8192)
    parser.add_argument("--build", type=Path, default=BUILD, help="folder of the programs")
    options = parser.parse_args()
    torch.set_num_threads(1)
    captions = prepare_captions(options.out, options.captions, options.images)
    model = load_target(options.bundle)
    for shard, first in enumerate(range(0, len(captions), SHARD)):
        part = captions[first : first + SHARD]
        codes, features = (shard_path(options.out, k, shard) for k in ("codes", "features"))
        if not codes.exists():
            draw_codes(options.bundle, part, first, codes, options.build / "lamplighter")
        if not features.exists():
            ids = tokenize(model, part, options.build / "tokenize")
            make_shard(model, read_codes(codes), ids, features)
        print(f"shard {shard}: {first + len(part)} pictures", flush=True)


if __name__ == "__main__":
    main()
