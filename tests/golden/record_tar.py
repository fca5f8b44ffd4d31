"""Records a case of Tar's language model: transformers' Qwen2 draws a small random one and generates codes with it.

    python3 -m venv VENV && VENV/bin/pip install -r tests/golden/record_tar_requirements.txt
    VENV/bin/python tests/golden/record_tar.py OUT [--shape NAME] [--seed N]

OUT gets case.json, io.safetensors and the folder of the model, whose tokens the official program adds in this order.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from torch import Tensor
from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM
from write_case import run_recorder, write_case

CAPTIONS = (
    "a red boat on the sea",
    "  Ein süßer Käfer, 35mm photo\n",
    "two dogs 🐕 and <I3> <|im_end|> 2024",
)
SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|"
    r"\s*[\r\n]+|\s+(?!\S)|\s+"
)
CHAT = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
SYSTEM = {"role": "system", "content": "You are a helpful assistant."}
PAD = "<|endoftext|>"
TOLERANCE = {"logits": 1e-4, "probabilities": 1e-4}
State = dict[str, Tensor]


@dataclass(frozen=True)
class Shape:
    """Sizes of a model and of the images it generates, in codes a side by their scale."""

    sides: tuple[int, ...] = (6, 3, 2)
    codes: int = 40
    model: dict[str, Any] = field(default_factory=dict)
    top_k: int = 12
    top_p: float = 0.9
    text_pieces: int = 300
    table: float = 1.0  # size of the numbers of the embedding
    gain: float = 1.0  # of the products


SHAPES = {
    "tiny": Shape(table=0.2, gain=3.0),  # else the head, which is the table, repeats the last code
    "wide": Shape(
        sides=(9, 4), codes=300, top_k=64, top_p=0.95,
        model={"hidden_size": 96, "num_attention_heads": 6, "num_key_value_heads": 3, "num_hidden_layers": 3,
               "tie_word_embeddings": False},
    ),
    "deep": Shape(
        sides=(7, 3, 2), codes=64, top_p=0.5,
        model={"num_hidden_layers": 7, "rms_norm_eps": 1e-5, "rope_parameters": {"rope_type": "default",
               "rope_theta": 10000.0}},
    ),
    "narrow": Shape(
        sides=(5,), codes=17, top_k=3, text_pieces=280,
        model={"hidden_size": 24, "num_attention_heads": 3, "num_key_value_heads": 1, "num_hidden_layers": 1,
               "intermediate_size": 20},
    ),
}  # fmt: skip


def write_tokenizer(folder: Path, shape: Shape) -> None:
    """Qwen2's kind of tokenizer, with tags, scales and codes added as the official program adds them."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(SPLIT), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=shape.text_pieces,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    corpus = [*CAPTIONS, SYSTEM["content"], "system user assistant\n"]
    tokenizer.train_from_iterator(corpus * 3, trainer)
    made = PreTrainedTokenizerFast(tokenizer_object=tokenizer, chat_template=CHAT, pad_token=PAD)
    for names, special in (
        (["<|im_start|>", "<|im_end|>"], True),
        (["<im_start>", "<im_end>"], True),
        ([f"<S{scale}>" for scale in range(len(shape.sides))], False),
        ([f"<I{code}>" for code in range(shape.codes)], False),
    ):
        made.add_tokens(names, special_tokens=special)
    made.save_pretrained(folder)


def draw(shape: Shape, ids: int, seed: int) -> Qwen2ForCausalLM:
    """A model with weights that bf16 holds, and a few ids more than the tokenizer."""
    sizes = {
        "hidden_size": 32, "intermediate_size": 40, "num_hidden_layers": 2, "num_attention_heads": 4,
        "num_key_value_heads": 2, "max_position_embeddings": 512, "tie_word_embeddings": True,
        "vocab_size": ids + 3, **shape.model,
    }  # fmt: skip
    model = Qwen2ForCausalLM(Qwen2Config(**sizes)).eval()
    random = torch.Generator().manual_seed(seed)
    for name, tensor in sorted(model.state_dict().items()):
        tensor.copy_(drawn(name, tensor, shape, random).bfloat16().float())
    model.tie_weights()
    return model


def drawn(name: str, tensor: Tensor, shape: Shape, random: torch.Generator) -> Tensor:
    """Numbers that keep the size of what passes, so that no part can be left out unseen."""
    noise = torch.randn(tensor.shape, generator=random)
    if "embed" in name:
        return shape.table * noise
    if tensor.dim() > 1:
        return shape.gain * noise * tensor[0].numel() ** -0.5
    is_scale = "norm" in name and name.endswith("weight")
    return (1.0 if is_scale else 0.0) + (0.1 if is_scale else 0.4) * noise


def save_model(folder: Path, model: Qwen2ForCausalLM) -> None:
    """In bf16."""
    model.save_pretrained(folder)
    state = {k: v.bfloat16() for k, v in load_file(folder / "model.safetensors").items()}
    save_file(state, folder / "model.safetensors", {"format": "pt"})
    (folder / "generation_config.json").write_text(json.dumps({"do_sample": True}))


class Recorder:
    """Runs of one model."""

    def __init__(self, folder: Path, shape: Shape, seed: int) -> None:
        write_tokenizer(folder, shape)
        self.shape = shape
        self.tokenizer = PreTrainedTokenizerFast.from_pretrained(folder)
        self.model = draw(shape, len(self.tokenizer), seed)
        save_model(folder, self.model)
        names = [f"<I{code}>" for code in range(shape.codes)]
        self.codes = self.tokenizer.convert_tokens_to_ids(names)

    def prompt(self, text: str, scale: int) -> Tensor:
        talk = [SYSTEM, {"role": "user", "content": text}]
        chat = self.tokenizer.apply_chat_template(talk, tokenize=False, add_generation_prompt=True)
        return self.tokenizer(f"{chat}<im_start><S{scale}>", return_tensors="pt").input_ids

    def generate(self, ids: Tensor, count: int, is_sampled: bool) -> Any:
        sampling = (
            {"do_sample": True, "top_k": self.shape.top_k, "top_p": self.shape.top_p}
            if is_sampled
            else {"do_sample": False}
        )
        return self.model.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            prefix_allowed_tokens_fn=lambda _, __: self.codes,
            max_new_tokens=count,
            min_new_tokens=count,
            return_dict_in_generate=True,
            output_scores=True,
            output_logits=True,
            **sampling,
        )

    def runs(self) -> Iterator[tuple[dict[str, Any], State]]:
        texts = [(text, side) for side in self.shape.sides for text in CAPTIONS]
        for number, (prompt, side) in enumerate(texts):
            for is_sampled in (False, True)[: 2 if number == 0 else 1]:
                name = f"{'sampled' if is_sampled else 'greedy'}_{number}"
                top_k, top_p = (self.shape.top_k, self.shape.top_p) if is_sampled else (0, 1.0)
                facts = {
                    "run": name,
                    "prompt": prompt,
                    "grid": (side, side),
                    "top_k": top_k,
                    "top_p": top_p,
                }
                tensors, margin = self.run(prompt, side, is_sampled)
                yield facts | {"margin": margin}, {f"{name}.{k}": v for k, v in tensors.items()}

    def run(self, prompt: str, side: int, is_sampled: bool) -> tuple[State, float]:
        """Tensors, and the least distance of a score from the second best one."""
        ids = self.prompt(prompt, self.shape.sides.index(side))
        result = self.generate(ids, side * side, is_sampled)
        scores = torch.cat(list(result.scores))[:, self.codes]
        logits = torch.cat(list(result.logits))[:, self.codes]
        best = scores.topk(2).values
        tensors = {"ids": ids[0].int(), "tokens": result.sequences[0, ids.shape[1] :].int()}
        tensors |= {"scores": scores} if is_sampled else {"logits": logits}
        return tensors, float((best[:, 0] - best[:, 1]).min())


@torch.inference_mode()
def record(out: Path, shape: Shape, seed: int) -> None:
    torch.manual_seed(seed)
    runs = Recorder(out / "model", shape, seed).runs()
    component = "Tar's language model from captions to codes: chat, generate() of codes alone"
    write_case(out, component, shape, seed, runs, TOLERANCE)


if __name__ == "__main__":
    run_recorder(__doc__.splitlines()[0], SHAPES, record)
