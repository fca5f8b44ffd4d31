"""A bundle's target in Python: the sequences it is fed for images, and its features of them.

Shapes: n images of N image tokens, P sequences an image (conditional, unconditional; the first alone
without guidance), L = prompt length + M - 1 rows of a sequence, F width of a feature. The M >= N tokens
of an image are its image tokens, a preview's in front of them, and the ends of its rows. The rows of a
prompt are the last of its length, rows in front of them are padding.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from .. import ops
from ..export.checkpoint import ExportError
from ..export.drafters.attach import target_head
from ..export.drafters.files import read_manifest
from ..transformer.head import Head, in_fp32
from .batch import NO_CODE

Ids = list[int]
PASS_NUMBERS = 1 << 29  # most of a pass over images that memory holds at a time
ROW_SCALE_BYTES = 4  # of a rounded cache's rows, behind head_dim integers


@dataclass
class TargetModel:
    """A bundle's target, and text encoder if it has one, through the operators, in fp32."""

    bundle: Path
    manifest: dict[str, Any]
    grid: dict[str, Any]
    target: torch.jit.ScriptModule
    text_encoder: torch.jit.ScriptModule | None
    head: Head  # fp32
    embedding: Tensor  # fp32 [vocabulary, F]
    rounded_cache: bool = False  # keys and values in 8 bits
    texts: bool = False  # codes are places among the ids that are no codes of images

    @property
    def guidance(self) -> float:
        return float(self.manifest["sampling"]["cfg_scale"])

    @property
    def sequences(self) -> int:
        """P, sequences of an image."""
        return 2 if self.guidance > 1 else 1

    @property
    def width(self) -> int:
        """F, also of what inner layers get."""
        return int(self.embedding.shape[1])

    @property
    def prompt_kind(self) -> str:
        """text_features, class or tokens."""
        return str(self.manifest["prompt"]["kind"])

    @property
    def reads_codes(self) -> bool:
        """Prompts are lists of codes, which the text encoder reads as squares."""
        return bool(self.manifest.get("tokenizer", {}).get("kind") == "codes")

    @property
    def counts_from_prompt(self) -> bool:
        """Positions count from a prompt's first row; else prompts of all lengths end at one position."""
        aligned = self.manifest["prompt"]["align"] == "start"
        return self.prompt_kind == "tokens" or (self.prompt_kind == "text_features" and aligned)

    @property
    def prompt_length(self) -> int:
        return int(self.manifest["prompt"]["length"])

    @property
    def cached(self) -> int:
        """Numbers in the keys and values of an image."""
        cache, rows = self.manifest["cache"], self.prompt_length + self.tokens
        row = 2 * cache["layers"] * cache["kv_heads"] * cache["head_dim"]
        return int(self.sequences * rows * row)

    @property
    def tokens(self) -> int:
        """Tokens of an image, with its preview and the ends of rows."""
        rows, columns = self.grid["rows"], self.grid["columns"]
        return int(self.preview + rows * columns + (rows - 1) * len(self.grid["row_end"]))

    @property
    def preview(self) -> int:
        """Tokens of the preview that stands in front of the image's own."""
        sides = self.grid.get("preview", {"rows": 0, "columns": 0})
        return int(sides["rows"] * sides["columns"])


def images_at_once(most: int, numbers: int) -> int:
    """How many images, at most `most`, a pass takes that holds `numbers` numbers of each."""
    return max(1, min(most, PASS_NUMBERS // numbers))


def require_layers(manifest: Mapping[str, Any], layers: Sequence[int]) -> None:
    """ExportError: the bundle's target has other layers, or does not tell what they get."""
    if not layers or "cache" not in manifest:
        return
    count = manifest["cache"]["layers"]
    if list(layers) != sorted({number for number in layers if 0 <= number < count}):
        got = " ".join(map(str, layers))
        known = f"0 to {count - 1}, each once, in ascending order" if count > 1 else "0 alone"
        raise ExportError(f"--layers: got {got}, the target has layers {known}", 2)
    if "forward_features" not in manifest["modules"]["target"].get("methods", ()):
        raise ExportError(
            "--layers: the target has no forward_features, which tells what layers get; export it again"
        )


def load_target(bundle: Path, size: str | None = None) -> TargetModel:
    """Loads a bundle for images of one of its sizes, WIDTHxHEIGHT, by default the first.

    ExportError: bundle, size or target are missing.
    """
    manifest = read_manifest(bundle)
    if manifest["tokens"].get("kind") == "continuous":
        raise ExportError(f"{bundle}: got continuous tokens, expected codes")
    grids = {f"{grid['width']}x{grid['height']}": grid for grid in manifest["grids"]}
    if size and size not in grids:
        raise ExportError(f"{bundle}: got size {size}, expected one of {', '.join(grids)}", 2)
    ops.load()
    loaded = {
        role: load_module(bundle / manifest["modules"][role]["file"])
        for role in ("target", "text_encoder")
        if role in manifest["modules"]
    }
    head = in_fp32(target_head(bundle, manifest))
    embedding = dict(loaded["target"].named_buffers())["embedding"].float().clone()
    for module in loaded.values():
        module.prepare(torch.zeros(1))
    grid = grids[size] if size else manifest["grids"][0]
    target, encoder = loaded["target"], loaded.get("text_encoder")
    return TargetModel(bundle, manifest, grid, target, encoder, head, embedding)


def load_module(file: Path) -> torch.jit.ScriptModule:
    try:
        return torch.jit.load(str(file)).eval()
    except (RuntimeError, ValueError) as error:
        reason = str(error).partition("\n")[0]
        raise ExportError(f"{file}: no TorchScript archive: {reason}") from error


def class_numbers(captions: list[str]) -> list[int]:
    wrong = [caption for caption in captions if not caption.strip().isdecimal()]
    if wrong:
        raise ExportError(f"captions: got {wrong[0]!r}, expected a class's number in every line")
    return [int(caption) for caption in captions]


def engine_requests(model: TargetModel, captions: list[str]) -> list[str]:
    """Requests for images as the engine's command reads them, one JSON object each."""
    size = {"width": model.grid["width"], "height": model.grid["height"]}
    if model.prompt_kind == "class":
        return [json.dumps({"class": number, **size}) for number in class_numbers(captions)]
    return [json.dumps({"prompt": caption, **size}) for caption in captions]


def prompt_ids(model: TargetModel, captions: list[str], build: Path) -> list[list[Ids]]:
    """Ids of every image's prompt as the engine makes them.

    For prompts of tokens the ids of every sequence; else of the caption, or the class.
    """
    if model.prompt_kind == "class":
        return [[[number]] for number in class_numbers(captions)]
    if model.prompt_kind == "tokens" or model.reads_codes:
        parts = [build / "golden_prompts", model.bundle]
        answers = ask(parts, engine_requests(model, captions))
        if model.reads_codes:
            return [[a["ids"]] for a in answers]
        return [[a["ids"], a["unconditional"]][: model.sequences] for a in answers]
    settings = model.manifest["tokenizer"]
    parts = [build / "tokenize", model.bundle / settings["file"], settings["max_length"]]
    requests = [json.dumps({"text": c, "cleaning": settings["cleaning"]}) for c in captions]
    return [[answer["ids"]] for answer in ask([*parts, settings["extra_ids"]], requests)]


def ask(command: list[Any], requests: list[str]) -> list[dict[str, Any]]:
    """Answers of a program that reads and writes JSON lines."""
    answers = run_program(command, "\n".join(requests) + "\n")
    return [json.loads(line) for line in answers.splitlines()]


def run_program(command: list[Any], text: str = "") -> str:
    """Output of one of the engine's programs that reads `text`.

    ExportError: it is not there, or it failed; the message is its own.
    """
    words = [str(part) for part in command]
    try:
        done = subprocess.run(words, input=text, capture_output=True, encoding="utf-8")
    except OSError as error:
        reason = f"{words[0]}: {error.strerror}; scripts/setup.sh builds the programs"
        raise ExportError(reason) from error
    if done.returncode:
        reason = done.stderr.strip().rpartition("\n")[2].removeprefix("error: ")
        reason = reason or f"ended with {done.returncode}"
        raise ExportError(f"{Path(words[0]).name}: {reason}", max(done.returncode, 1))
    sys.stderr.write(done.stderr)
    return done.stdout


def with_row_ends(model: TargetModel, codes: Tensor) -> Tensor:
    """Image tokens int64 [n,N] as the M tokens of an image, row ends as NO_CODE."""
    if not model.grid["row_end"]:
        return codes
    rows = codes.unflatten(1, (model.grid["rows"], model.grid["columns"]))
    return F.pad(rows, (0, 1), value=NO_CODE).flatten(1)[:, : model.tokens]


def image_ids(model: TargetModel, codes: Tensor) -> Tensor:
    """Ids that the target is fed for codes [n,M]."""
    tokens = model.manifest["tokens"]
    if model.texts:
        ids = codes.clamp_min(0)
        return ids + tokens["codebook_size"] * (ids >= tokens["first_image_id"])
    ids = codes + tokens["first_image_id"]
    for end in model.grid["row_end"]:
        ids = ids.masked_fill(codes == NO_CODE, end)
    return ids


def next_ids(model: TargetModel, codes: Tensor, prompts: list[list[Ids]]) -> Tensor:
    """The id behind every row, int64 [n,P,L], of images with prompts of tokens; padding is 0."""
    length = model.prompt_length
    shape = (len(prompts), len(prompts[0]), length + codes.shape[1] - 1)
    ids = torch.zeros(shape, dtype=torch.int64)
    ids[..., length - 1 :] = image_ids(model, codes)[:, None]
    for image, sequences in enumerate(prompts):
        for number, prompt in enumerate(sequences):
            ids[image, number, length - len(prompt) : length - 1] = torch.tensor(prompt[1:])
    return ids


def condition(model: TargetModel, captions: list[Tensor], mask: Tensor) -> Tensor:
    """What the target embeds of captions' ids: features [n,T,C], or classes; mask [n,T]."""
    length, encoder = model.prompt_length, model.text_encoder
    if encoder and model.reads_codes:  # no padding: it would be part of a square
        alone = [encoder.encode(ids[None], torch.ones_like(ids)[None])[0] for ids in captions]
        return torch.stack([F.pad(rows, (0, 0, 0, length - len(rows))) for rows in alone])
    ids = torch.stack([F.pad(ids, (0, length - len(ids))) for ids in captions])
    return encoder.encode(ids, mask) if encoder else ids


def prompt_rows(model: TargetModel, prompts: list[list[Ids]]) -> list[Tensor]:
    """Input rows [rows,H] of every sequence's prompt."""
    target = model.target
    if model.prompt_kind == "tokens":
        return [target.embed(torch.tensor([ids]))[0] for image in prompts for ids in image]
    valid = [len(ids) for (ids,) in prompts]
    mask = (torch.arange(model.prompt_length) < torch.tensor(valid)[:, None]).long()
    features = condition(model, [torch.tensor(ids) for (ids,) in prompts], mask)
    rows = [target.embed_condition(features, mask)]
    if model.sequences == 2:
        rows.append(target.embed_unconditional(mask))
    images = zip(torch.stack(rows, 1), valid, strict=True)
    return [sequence[:count] for image, count in images for sequence in image]


@torch.inference_mode()
def target_features(
    model: TargetModel, codes: Tensor, prompts: list[list[Ids]], layers: Sequence[int] = ()
) -> tuple[Tensor, Tensor]:
    """Features fp32 [n,P,L,F] of images with codes int64 [n,M], and their prompts' rows [n,P].

    layers: behind them stands what these layers of the target get, [n,P,L,F + H * number of layers].
    """
    heads = prompt_rows(model, prompts)
    valid = torch.tensor([len(rows) for rows in heads])
    image = model.target.embed(image_ids(model, codes)[:, :-1])
    image = image.repeat_interleave(model.sequences, 0)
    rows = [torch.cat(parts) for parts in zip(heads, image, strict=True)]
    x = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)  # causal: no row sees the padding
    positions = torch.arange(x.shape[1]).repeat(len(rows), 1)
    if model.manifest["prompt"]["align"] == "end":
        positions += (model.prompt_length - valid)[:, None]
    limit = model.prompt_length + codes.shape[1] - 2  # of the padding
    empty, lengths = torch.empty(0, dtype=torch.int64), torch.zeros(len(rows), dtype=torch.int64)
    shape = model.manifest["cache"]
    sizes = [shape["layers"], 2, len(rows), shape["kv_heads"], x.shape[1]]
    if model.rounded_cache:
        cache = torch.zeros(*sizes, shape["head_dim"] + ROW_SCALE_BYTES, dtype=torch.int8)
    else:
        cache = torch.zeros(*sizes, shape["head_dim"], dtype=x.dtype)
    inputs = (x, positions.clamp_max(limit), empty, lengths, cache)
    if layers:
        hidden, inner = model.target.forward_features(*inputs, torch.tensor(list(layers)))
        out = torch.cat([hidden, inner], -1)
    else:
        _, out = model.target.forward(*inputs)
    full = torch.zeros(len(rows), limit + 1, out.shape[2])
    for sequence, (features, own) in enumerate(zip(out, rows, strict=True)):
        full[sequence, len(full[0]) - len(own) :] = features[: len(own)]
    pairs = (len(codes), model.sequences)
    return full.unflatten(0, pairs), valid.unflatten(0, pairs)
