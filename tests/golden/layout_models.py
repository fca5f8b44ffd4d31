"""A bundle whose caches hold what its models were fed, ids and positions."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

CODES = 61
FIRST_CODE = 4
VOCABULARY = 8896
CONTEXTS = 997
PROMPT_LENGTH = 16


def random_logits(seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return 4 * torch.randn(CONTEXTS, CODES, generator=generator)


class Recorder(torch.nn.Module):
    """Rows are pairs of numbers; a row's logits depend on both."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.register_buffer("table", random_logits(seed))

    @torch.jit.export
    def prepare(self, like: Tensor) -> None:
        self.table = self.table.to(like.device)

    @torch.jit.export
    def embed(self, ids: Tensor) -> Tensor:
        return torch.stack([ids, ids], -1).float()

    @torch.jit.export
    def logits(self, hidden: Tensor) -> Tensor:
        numbers = hidden.long()
        context = (31 * numbers[..., 0] + 7 * numbers[..., 1]) % 997
        return torch.embedding(self.table, context)

    def write(self, cache: Tensor, lengths: Tensor, keys: Tensor, values: Tensor) -> None:
        starts = lengths[1] if lengths.dim() == 2 else lengths
        for sequence in range(keys.size(0)):
            start = int(starts[sequence])
            end = start + keys.size(1)
            cache[0, 0, sequence, 0, start:end] = keys[sequence].unsqueeze(-1)
            cache[0, 1, sequence, 0, start:end] = values[sequence]


class Target(Recorder):
    """Keys are ids, values ids and positions; so are features."""

    def forward(
        self, x: Tensor, positions: Tensor, tree_mask: Tensor, lengths: Tensor, cache: Tensor
    ) -> tuple[Tensor, Tensor]:
        ids = x[..., 0]
        features = torch.stack([ids, positions.float()], -1)
        self.write(cache, lengths, ids, features)
        return features, features


class Drafter(Recorder):
    """Keys are the ids of features, values the ids after them and positions; guesses features."""

    def forward(
        self, embeddings: Tensor, features: Tensor, positions: Tensor, tree_mask: Tensor,
        lengths: Tensor, cache: Tensor,
    ) -> Tensor:  # fmt: skip
        following = embeddings[..., 0]
        values = torch.stack([following, positions.float()], -1)
        self.write(cache, lengths, features[..., 0], values)
        return torch.stack([following, positions.float() + 1], -1)


def save(folder: Path, module: Recorder, name: str) -> dict[str, Any]:
    torch.jit.script(module.eval()).save(str(folder / name))
    return {"file": name, "dtype": "float32"}


def write_bundle(folder: Path, grids: list[dict[str, Any]], agreeing: float) -> Path:
    """The drafter guesses like the target in this share of all contexts."""
    folder.mkdir()
    target, drafter = Target(1), Drafter(2)
    same = torch.rand(CONTEXTS, generator=torch.Generator().manual_seed(3)) < agreeing
    drafter.table[same] = target.table[same]
    cache = {"layers": 1, "kv_heads": 1, "head_dim": 2}
    longest = max(grid["rows"] * (grid["columns"] + 1) for grid in grids) + PROMPT_LENGTH
    modules = {"target": save(folder, target, "target.pt")}
    drafters = {"main": {**save(folder, drafter, "drafter.pt"), **cache, "max_length": longest}}
    files = {
        path.name: {
            "bytes": path.stat().st_size,
            "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
        }
        for path in sorted(folder.iterdir())
    }
    manifest = {
        "schema_version": 1, "name": "layout", "family": "lumina-mgpt", "licence": "", "source": "",
        "exporter": {"version": "0", "torch": torch.__version__},
        "files": files, "modules": modules, "drafters": drafters,
        "prompt": {"kind": "tokens", "length": PROMPT_LENGTH, "align": "start", "prefix": [],
                   "text": "{prompt}", "suffix": [], "unconditional": []},
        "tokens": {"vocabulary": VOCABULARY, "first_image_id": FIRST_CODE, "codebook_size": CODES},
        "grids": grids, "sampling": {},
        "target": {"hidden": 2, "features": 2, "head": CODES},
        "cache": {**cache, "max_length": longest},
    }  # fmt: skip
    (folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    return folder
