"""A small LlamaGen-shaped target that drafts for a bundle's, and its distributions of the target's images.

Shapes: B images, P rows of an image's guidance (conditional, unconditional; 1 without), V tokens, M
codes of an image. Distributions are of codes 1 .. M - 1: nothing drafts the first one.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

from ..eagle.features import Ids, TargetModel, load_module, prompt_ids
from ..eagle.train import drafter_config
from ..export.checkpoint import ExportError
from ..llamagen.config import GPTConfig
from ..llamagen.gpt import GPT, CaptionEmbedder, pad_left


@dataclass(frozen=True)
class Size:
    """Width, layers, heads and feed-forward width of a student; 0: the target's."""

    dim: int = 0
    layers: int = 2
    heads: int = 0
    ffn: int = 0


def student_config(model: TargetModel, size: Size) -> GPTConfig:
    """A student of the target's prompts, grid and codes. ExportError: the target is no LlamaGen."""
    if model.prompt_kind == "tokens":
        raise ExportError(f"{model.bundle}: prompts are tokens, expected text features or classes")
    manifest, rotations = model.manifest, drafter_config(model)
    prompt, dim = manifest["prompt"], size.dim or int(manifest["target"]["hidden"])
    classes = model.prompt_kind == "class"
    try:
        return GPTConfig(
            dim=dim,
            n_layer=size.layers,
            n_head=size.heads or max(dim // int(manifest["cache"]["head_dim"]), 1),
            ffn_dim=size.ffn or 2 * dim,
            vocab_size=int(manifest["tokens"]["codebook_size"]),
            grid=rotations.grid,
            cls_token_num=model.prompt_length,
            caption_dim=int(prompt.get("features", 0)),
            num_classes=int(prompt.get("classes", 0)),
            model_type="c2i" if classes else "t2i",
            prefix_rotation=rotations.prefix_rotation,
        )
    except ValueError as error:
        raise ExportError(str(error), 2) from error


def new_student(config: GPTConfig, model: TargetModel) -> GPT:
    """A student that begins with the target's embedding, head and prompts where its width allows that."""
    student = GPT(config)
    if config.dim != int(model.manifest["target"]["hidden"]):
        return student
    weights = dict(
        load_module(model.bundle / model.manifest["modules"]["target"]["file"]).named_buffers()
    )
    weights_of = {"embedding": student.tok_embeddings.weight, "head": student.output.weight}
    if isinstance(student.cls_embedding, CaptionEmbedder):
        project = student.cls_embedding.cap_proj
        weights_of["fc1"], weights_of["fc2"] = project.fc1.weight, project.fc2.weight
        weights_of["null_features"] = student.cls_embedding.uncond_embedding
    with torch.no_grad():
        for name, own in weights_of.items():
            if weights[name].shape == own.shape and weights[name].is_floating_point():
                own.copy_(weights[name])
    return student


class Conditions:
    """The conditions that a GPT reads: every image's caption or class."""

    def __init__(self, model: TargetModel, captions: list[str], build: Path) -> None:
        ids = [image[0] for image in prompt_ids(model, captions, build)]
        self.classes = torch.tensor(ids)[:, 0] if model.prompt_kind == "class" else None
        if self.classes is None:
            self.features, self.mask = text_features(model, ids)

    def of(self, images: Tensor) -> tuple[Tensor, Tensor | None]:
        """Conditions and masks of images int64 [B], as GPT.forward takes them."""
        if self.classes is not None:
            return self.classes[images], None
        return self.features[images].float(), self.mask[images]


@torch.inference_mode()
def text_features(model: TargetModel, ids: list[Ids]) -> tuple[Tensor, Tensor]:
    """Left-padded features bfloat16 [n,T,C] of captions, and their masks [n,T]."""
    assert model.text_encoder is not None
    parts = []
    for first in range(0, len(ids), 64):
        some = ids[first : first + 64]
        valid = torch.tensor([len(one) for one in some])
        padded = torch.tensor([one + [0] * (model.prompt_length - len(one)) for one in some])
        mask = (torch.arange(model.prompt_length) < valid[:, None]).long()
        parts.append(pad_left(model.text_encoder.encode(padded, mask), mask))
    features, masks = (torch.cat(tensors).clone() for tensors in zip(*parts, strict=True))
    return features.bfloat16(), masks


def student_logits(
    student: GPT,
    codes: Tensor,
    condition: tuple[Tensor, Tensor | None],
    pairs: int,
    guidance: float,
) -> Tensor:
    """Guided logits fp32 [B, M - 1, V] of codes 1 .. M - 1, int64 [B,M]."""
    cond, mask = condition
    drop = torch.arange(pairs).bool().repeat(len(codes))
    logits = student(
        codes[:, :-1].repeat_interleave(pairs, 0),
        cond.repeat_interleave(pairs, 0),
        None if mask is None else mask.repeat_interleave(pairs, 0),
        drop,
    )[:, 1:].float()
    if pairs == 1:
        return logits
    conditional, unconditional = logits[0::2], logits[1::2]
    return unconditional + guidance * (conditional - unconditional)


def divergence(kind: str, student: Tensor, target: Tensor) -> Tensor:
    """Mean divergence of logits [B,R,V]: forward-kl KL(p, q), reverse-kl KL(q, p), tvd.

    DistillSpec (Zhou et al. 2024, section 3.2), of target p and student q; 1 - tvd is the acceptance rate.
    """
    log_p, log_q = target.log_softmax(-1), student.log_softmax(-1)
    if kind == "forward-kl":
        return F.kl_div(log_q, log_p, reduction="none", log_target=True).sum(-1).mean()
    if kind == "reverse-kl":
        return F.kl_div(log_p, log_q, reduction="none", log_target=True).sum(-1).mean()
    if kind == "tvd":
        return (log_p.exp() - log_q.exp()).abs().sum(-1).mean() / 2
    raise ValueError(f"divergence: got {kind!r}, expected forward-kl, reverse-kl or tvd")


def chain_tests(p: Tensor, q: Tensor, codes: Tensor, steps: int) -> tuple[Tensor, Tensor]:
    """Acceptance of chains of drafts by lossless verification, as models.eagle.losses.acceptance gives it.

    p, q: probabilities [B, M - 1, V] of codes 1 .. M - 1. A student reads tokens alone: what it says of a
    code does not depend on where its draft began. Returns rates and probabilities, both [B, M - 1, steps].
    """
    rate = torch.minimum(p, q).sum(-1)
    token = codes[:, 1:, None]
    kept = (q.gather(-1, token) / p.gather(-1, token).clamp_min(1e-20)).clamp_max(1).squeeze(-1)
    rates, tests = (
        F.pad(values, (0, steps - 1), value=end).unfold(1, steps, 1)
        for values, end in ((rate, torch.nan), (kept, 0.0))
    )
    return rates, tests
