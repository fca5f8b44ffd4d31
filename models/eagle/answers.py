"""Training data of a drafter of texts: a bundle's answers to questions about images, and its target's features.

    python -m models.eagle.answers --bundle DIR --questions FILE --out FOLDER --pairs 4096

FILE has a line {"file_name": "a.png", "question": "What is it?"} for each pair; images are found from its
folder. The engine answers at the bundle's defaults for texts. FOLDER then holds

    questions.jsonl         the pairs used
    answers-k.json          prompts and answers of shard k
    features-k.safetensors  as of models.eagle.data: an answer stands in place of an image's tokens

Codes are places among the ids of the target's head for texts, with the first id of `stop` where an answer
ended, and BEHIND behind its end. A file exists only when complete, so the command may be stopped and run again.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ..export.checkpoint import ExportError
from ..export.command import run_command
from ..export.drafters.attach import of_texts, target_head
from ..export.drafters.files import read_manifest
from ..progress import Progress
from ..transformer.head import codes_of, in_fp32
from .batch import BEHIND
from .data import BUILD, SEED, SHARD, load_shards, make_shard, shard_path
from .features import TargetModel, ask, load_target
from .files import keep, prepare_lines
from .image_folder import CaptionedImage, listed, readable_files, require_encoder

QUESTIONS = "questions.jsonl"  # of a data set


def text_target(bundle: Path, prompt_length: int, tokens: int) -> TargetModel:
    """The target for texts behind prompts of at most `prompt_length` ids, of `tokens` ids each."""
    model = load_target(bundle)
    manifest = of_texts(bundle, model.manifest)
    head = in_fp32(target_head(bundle, manifest, texts=True))
    prompt = {"kind": "tokens", "align": "start", "length": prompt_length}
    sampling = {"top_k": 0, **manifest["text"]["sampling"], "cfg_scale": 1.0}
    target = {**manifest["target"], "head": codes_of(head)}
    grid = {"rows": 1, "columns": tokens, "row_end": []}
    manifest = {**manifest, "prompt": prompt, "sampling": sampling, "target": target}
    return replace(model, manifest=manifest, grid=grid, head=head, texts=True)


def load_for(bundle: Path, data: Path) -> TargetModel:
    """The target that a data set was made with: for images, or for the texts of this program."""
    if not (data / QUESTIONS).exists():
        return load_target(bundle)
    shards = load_shards(data)
    if not shards:
        raise ExportError(f"{data}: got no features, expected the files of models.eagle.answers")
    tokens, rows = shards[0]["codes"].shape[1], shards[0]["features"].shape[2]
    return text_target(bundle, rows - tokens + 1, tokens)


def prepare_questions(out: Path, source: Path, most: int) -> list[CaptionedImage]:
    """The pairs of the data set `out`; on a later call they must be the same."""
    pairs = list(islice(listed(source, "question"), most))
    if not pairs:
        raise ExportError(f"{source}: got no lines, expected questions about images")
    lines = [
        json.dumps(
            {"file_name": str(pair.path.relative_to(source.parent)), "question": pair.caption}
        )
        for pair in pairs
    ]
    prepare_lines(out / QUESTIONS, lines, str(source))
    return pairs


def answer(
    bundle: Path, pairs: Sequence[CaptionedImage], first: int, tokens: int, out: Path, build: Path
) -> None:
    """Runs the engine on the pairs first, first + 1, ... and keeps prompts and answers."""
    with tempfile.TemporaryDirectory() as folder:
        files = readable_files(pairs, Path(folder))
        requests = [
            json.dumps(
                {
                    "image": str(file),
                    "question": pair.caption,
                    "seed": SEED + number,
                    "max_tokens": tokens,
                }
            )
            for number, (pair, file) in enumerate(zip(pairs, files, strict=True), first)
        ]
        partial = Path(folder) / "answers.json"
        partial.write_text(json.dumps(ask([build / "answer", bundle], requests)), encoding="utf-8")
        keep(partial, out)


def codes_of_answers(model: TargetModel, answers: Sequence[Mapping[str, Any]]) -> Tensor:
    """Answers as places among the ids of the head, int64 [n,M]."""
    tokens = model.manifest["tokens"]
    codes = torch.full((len(answers), model.tokens), BEHIND)
    for row, found in zip(codes, answers, strict=True):
        ids = [*found["ids"], *(model.manifest["text"]["stop"][:1] if found["ended"] else [])]
        own = torch.tensor(ids[: model.tokens])
        row[: len(own)] = own - tokens["codebook_size"] * (own >= tokens["first_image_id"])
    return codes


def make_data(options: argparse.Namespace) -> None:
    torch.set_num_threads(1)
    manifest = read_manifest(options.bundle)
    of_texts(options.bundle, manifest)
    require_encoder(options.bundle, manifest)
    pairs = prepare_questions(options.out, options.questions, options.pairs)
    progress = Progress(options.out.name, 2 * len(pairs))
    shards = []
    for shard, first in enumerate(range(0, len(pairs), SHARD)):
        part, file = pairs[first : first + SHARD], options.out / f"answers-{shard:05d}.json"
        if not file.exists():
            answer(options.bundle, part, first, options.tokens, file, options.build)
        shards.append(json.loads(file.read_text(encoding="utf-8")))
        progress.show(first + len(part))
    longest = max(len(found["prompt"]) for answers in shards for found in answers)
    known = load_shards(options.out)
    if known:
        rows = known[0]["features"].shape[2] - options.tokens + 1
        if longest > rows or known[0]["codes"].shape[1] != options.tokens:
            raise ExportError(
                f"{options.out}: got prompts of {longest} ids and answers of {options.tokens}, the shards have "
                f"{rows} and {known[0]['codes'].shape[1]}; use another folder",
                7,
            )
        longest = rows
    model = text_target(options.bundle, longest, options.tokens)
    for shard, answers in enumerate(shards):
        features = shard_path(options.out, "features", shard)
        if not features.exists():
            prompts = [[found["prompt"]] for found in answers]
            make_shard(model, codes_of_answers(model, answers), prompts, features)
        progress.show(len(pairs) + shard * SHARD + len(answers))
        progress.log(f"shard {shard}: {shard * SHARD + len(answers)} answers")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m models.eagle.answers", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--bundle", type=Path, required=True)
    parser.add_argument(
        "--questions",
        type=Path,
        required=True,
        metavar="FILE",
        help="images and questions, a line each",
    )
    parser.add_argument("--out", type=Path, required=True, help="folder of the data set")
    parser.add_argument("--pairs", type=int, default=4096, help="default: %(default)s")
    parser.add_argument(
        "--tokens", type=int, default=128, help="most tokens of an answer (default: %(default)s)"
    )
    parser.add_argument("--build", type=Path, default=BUILD, help="folder of the programs")
    options = parser.parse_args(arguments)
    return run_command(lambda: make_data(options))


if __name__ == "__main__":
    sys.exit(main())
