"""Finds recorded cases and reads them."""

from __future__ import annotations

import hashlib
import json
import os
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor

FOLDER = Path(__file__).resolve().parent / "cases"

# A case's kind is the start of its folder's name; the rest names size or variant.
KINDS = (
    "llamagen_t2i",
    "llamagen_c2i",
    "llamagen_vq",
    "llamagen_t5",
    "lantern_llamagen_drafter",
    "llamagen_end_to_end",
    "bpe_",
    "vqgan_",
    "chameleon_hf",
    "chameleon_meta",
    "chameleon_text",
    "lumina_mgpt",
    "lantern_target",
    "lantern_drafter",
    "acceptance/sampling_filters",
    "acceptance/official_posterior",
    "acceptance/paper_posterior",
    "acceptance/enumeration",
    "acceptance/trees",
    "acceptance/dynamic_trees",
    "acceptance/neighbors",
    "acceptance/other_verifiers",
    "lumina_logits",
    "lumina_prompts",
    "anole_logits",
    "lantern_lumina_structure",
    "acceptance/structure",
    "methods/sjd/",
    "methods/scd/",
    "methods/gsd/",
    "methods/sjd_pac/",
    "methods/ngram/",
    "methods/medusa/",
    "methods/zipar/",
    "methods/eagle3_drafter/",
    "continuous/flash",
    "continuous/mar",
    "continuous/kl16",
    "continuous/cspd",
    "continuous/cspd_toy",
    "families/janus_target",
    "families/janus_vq",
    "families/janus_prompts",
    "families/janus_generate",
    "families/lumina2_target",
    "families/lumina2_movq",
    "families/lumina2_prompts",
    "families/lumina2_generate",
    "families/lumina2_logits",
    "families/lumina2_logits_full",
    "families/simplear_target",
    "families/simplear_logits",
    "families/simplear_prompts",
    "families/simplear_generate",
    "families/emu3_generate",
    "families/emu35_generate",
    "families/glm_image_generate",
    "families/janus_converted_generate",
    "families/tar_generate",
    "families/tar_decoder",
    "families/cosmos_fsq",
    "families/cosmos_dv_decoder",
    "families/janus_encoder",
    "families/emu3_encoder",
    "families/cosmos_encoder",
)

# Folders whose cases' kinds start with the folder's name. Kinds that no test knows are skipped there.
GROUPS = ("methods", "continuous", "families")

DTYPES = {
    "float16": torch.float16, "float32": torch.float32, "float64": torch.float64,
    "bool": torch.bool, "int16": torch.int16, "int32": torch.int32, "int64": torch.int64,
    "uint8": torch.uint8, "uint16": torch.uint16, "uint64": torch.uint64,
}  # fmt: skip


@dataclass(frozen=True)
class Case:
    """One folder with a case.json; `name` is its path below the folder of all cases."""

    name: str
    folder: Path

    @property
    def kind(self) -> str | None:
        """The longest known kind the name starts with; None when there is none.

        Folders above the one that names the kind do not matter, nor does a missing `acceptance` or
        one of GROUPS.
        """
        parts = self.name.split("/")
        starts = [parts.index(self.group)] if self.group else range(len(parts))
        for start in starts:
            rest = "/".join(parts[start:])
            names = (rest, *(f"{group}/{rest}" for group in ("acceptance", *GROUPS)))
            found = [k for k in KINDS if any(n.startswith(k) for n in names)]
            if found:
                return max(found, key=len)
        return None

    @property
    def group(self) -> str | None:
        """The folder of GROUPS the case lies in."""
        return next((part for part in self.name.split("/") if part in GROUPS), None)

    @cached_property
    def info(self) -> dict[str, Any]:
        value = json.loads((self.folder / "case.json").read_text(encoding="utf-8"))
        assert isinstance(value, dict), f"{self.folder}/case.json: expected an object"
        return value

    @cached_property
    def tensors(self) -> dict[str, Tensor]:
        return load_file(self.folder / "io.safetensors")

    def long(self, name: str) -> Tensor:
        return self.tensors[name].long()

    def has(self, name: str) -> bool:
        return name in self.tensors

    def strings(self, name: str) -> list[bytes]:
        """The byte strings that are stored as one array and its offsets."""
        data = self.tensors[name].numpy().tobytes()
        offsets = self.tensors[f"{name}_offsets"].tolist()
        return [data[a:b] for a, b in zip(offsets, offsets[1:], strict=False)]

    def lists(self, name: str) -> list[list[int]]:
        """The lists of numbers that are stored as one array and its offsets."""
        values = self.tensors[name].tolist()
        offsets = self.tensors[f"{name}_offsets"].tolist()
        return [values[a:b] for a, b in zip(offsets, offsets[1:], strict=False)]

    def weights(self) -> list[Path]:
        return [self.folder / entry["file"] for entry in self.info["weights"]]

    @property
    def published(self) -> Path:
        """The folder of published files that it lists."""
        return self.folder / self.info["weights"][0]["folder"]

    def tolerance(self, entry: str, index: int = 0) -> float:
        """The case's tolerance, or a number of its text by its position there."""
        facts = self.info["tolerance"][entry]
        if isinstance(facts, float):
            return facts
        numbers = re.findall(r"\d+(?:\.\d+)?e-\d+", facts)
        return float(numbers[index])

    def check_files(self) -> None:
        """Sizes and checksums of the files the case lists, shapes and dtypes of its tensors."""
        for name, entry in self.info.get("files", {}).items():
            data = (self.folder / name).read_bytes()
            size = entry.get("bytes", entry.get("size"))
            assert len(data) == size, f"{self.name}/{name}: {len(data)} bytes"
            assert hashlib.sha256(data).hexdigest() == entry["sha256"], f"{self.name}/{name}"
        for name, entry in self.info.get("tensors", {}).items():
            if isinstance(entry, dict):
                tensor = self.tensors[name]
                assert list(tensor.shape) == entry["shape"], f"{self.name}: shape of {name}"
                assert tensor.dtype == DTYPES[entry["dtype"]], f"{self.name}: dtype of {name}"


def root() -> Path:
    return Path(os.environ.get("LAMPLIGHTER_GOLDEN") or FOLDER).resolve()


def all_cases() -> list[Case]:
    """Every folder below LAMPLIGHTER_GOLDEN (default: cases/) that holds a case.json."""
    folders = sorted(path.parent for path in root().rglob("case.json"))
    return [Case(str(f.relative_to(root())) if f != root() else f.name, f) for f in folders]


def sibling(case: Case, text: str) -> Case:
    """The case whose folder the first word names, beside `case` or anywhere."""
    name = text.split()[0]
    found = [other for other in all_cases() if other.folder.name == name]
    near = [other for other in found if other.folder.parent == case.folder.parent]
    return (near or found)[0]


def cases_of(*kinds: str) -> list[Case]:
    return [case for case in all_cases() if case.kind in kinds]
