"""What scripts share that record a case of a small random model of transformers."""

from __future__ import annotations

import argparse
import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Any

import torch
import transformers
from safetensors.torch import load_file, save_file
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from torch import Tensor, nn

State = dict[str, Tensor]
Facts = dict[str, Any]
Runs = Iterable[tuple[Facts, State]]
SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|"
    r"\s*[\r\n]+|\s+(?!\S)|\s+"
)


def byte_level(
    texts: Iterable[str], pieces: int, split: str = "", normalizer: Any = None
) -> Tokenizer:
    """A small tokenizer of bytes, trained on texts."""
    tokenizer = Tokenizer(models.BPE())
    if normalizer:
        tokenizer.normalizer = normalizer
    of_bytes = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=not split)
    parts = [pre_tokenizers.Split(Regex(split), "isolated")] if split else []
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([*parts, of_bytes]) if parts else of_bytes
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    trainer = trainers.BpeTrainer(vocab_size=pieces, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def drawn(
    name: str,
    tensor: Tensor,
    random: torch.Generator,
    wide: tuple[str, ...] = (),
    table: float = 1.0,
    gain: float = 1.0,
) -> Tensor:
    """Numbers that keep the size of what passes, so that no part can be left out unseen.

    wide: ends of the names of vectors that spread more; table, gain: size of embeddings and of products.
    """
    noise = torch.randn(tensor.shape, generator=random)
    if name.endswith("running_var"):
        return 0.5 + noise.abs()
    if "embed" in name:
        return table * noise
    if tensor.dim() > 1:
        return gain * noise * tensor[0].numel() ** -0.5
    is_scale = "norm" in name and name.endswith("weight")
    return (1.0 if is_scale else 0.0) + (0.4 if name.endswith(wide) else 0.1) * noise


def draw(model: nn.Module, seed: int, **sizes: Any) -> Any:
    """The model with weights that bf16 holds."""
    random = torch.Generator().manual_seed(seed)
    for name, tensor in sorted(model.state_dict().items()):
        if tensor.is_floating_point():
            tensor.copy_(drawn(name, tensor, random, **sizes).bfloat16().float())
    return model.eval()


def save_model(folder: Path, model: Any, unused: tuple[str, ...] = ()) -> None:
    """In bf16, without the tensors whose names begin so."""
    model.save_pretrained(folder)
    kept = {
        name: tensor.bfloat16() if tensor.is_floating_point() else tensor
        for name, tensor in load_file(folder / "model.safetensors").items()
        if not name.startswith(unused)
    }
    save_file(kept, folder / "model.safetensors", {"format": "pt"})


def generation(count: int, top_k: int, **more: Any) -> dict[str, Any]:
    """Arguments of generate() for that number of tokens; top_k 0: greedily."""
    sampling = {"do_sample": True, "top_k": top_k, **more} if top_k else {"do_sample": False}
    return {
        "max_new_tokens": count, "min_new_tokens": count, "return_dict_in_generate": True,
        "output_scores": True, **sampling,
    }  # fmt: skip


def least_margin(scores: Tensor) -> float:
    """The least distance of a row's best score from the second best one."""
    best = scores[scores.isfinite().any(-1)].topk(2).values
    return float((best[:, 0] - best[:, 1]).min())


def runs_of(
    requests: Iterable[Facts], top_k: int, run: Callable[[Facts, int], tuple[Facts, State]]
) -> Iterator[tuple[Facts, State]]:
    """A greedy run of every request, and a sampled one of the first. run: facts and tensors of one."""
    for number, request in enumerate(requests):
        for k in (0, top_k)[: 2 if number == 0 else 1]:
            name = f"{'sampled' if k else 'greedy'}_{number}"
            facts, tensors = run(request, k)
            yield (
                {"run": name, **request, "top_k": k, **facts},
                {f"{name}.{part}": tensor for part, tensor in tensors.items()},
            )


def write_case(
    out: Path,
    component: str,
    shape: Any,
    seed: int,
    runs: Runs,
    tolerance: Mapping[str, float],
    source: Mapping[str, Any] | None = None,
) -> None:
    """Writes io.safetensors and case.json. `runs` gives the facts and the tensors of each; shape: a dataclass
    or a dictionary; source: by default transformers."""
    facts, tensors = [], {}
    for about, found in runs:
        facts.append(about)
        tensors |= found
    save_file({k: v.contiguous().clone() for k, v in tensors.items()}, out / "io.safetensors")
    files = sorted(path for path in out.rglob("*") if path.is_file())
    case = {
        "case": out.name,
        "component": component,
        "source": source or {"package": "transformers", "version": transformers.__version__},
        "seed": seed,
        "shape": asdict(shape) if is_dataclass(shape) else shape,
        "runs": facts,
        "tolerance": dict(tolerance),
        "files": {
            str(path.relative_to(out)): {
                "bytes": path.stat().st_size,
                "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
            }
            for path in files
        },
    }
    (out / "case.json").write_text(json.dumps(case, indent=1, ensure_ascii=False) + "\n")


def run_recorder(
    about: str, shapes: Mapping[str, Any], record: Callable[[Path, Any, int], None]
) -> None:
    """The command line of a script that records: OUT [--shape NAME] [--seed N]."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("out", type=Path)
    parser.add_argument("--shape", choices=shapes, default="tiny")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    record(options.out, shapes[options.shape], options.seed)
