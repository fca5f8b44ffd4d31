"""Records a case of Tar's language model: transformers' Qwen2 draws a small random one and generates codes with it.

    python3 -m venv VENV && VENV/bin/pip install -r tests/golden/record_tar_requirements.txt
    VENV/bin/python tests/golden/record_tar.py OUT [--shape NAME] [--seed N]

OUT gets case.json, io.safetensors and the folder of the model, whose tokens the official program adds in this order.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import recording
import torch
from tokenizers import normalizers
from torch import Tensor
from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

CAPTIONS = (
    "a red boat on the sea",
    "  Ein süßer Käfer, 35mm photo\n",
    "two dogs 🐕 and <I3> <|im_end|> 2024",
)
CHAT = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
SYSTEM = {"role": "system", "content": "You are a helpful assistant."}
PAD = "<|endoftext|>"
TOLERANCE = {"logits": 1e-4, "probabilities": 1e-4}


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
    texts = [*CAPTIONS, SYSTEM["content"], "system user assistant\n"] * 3
    split = recording.SPLIT.replace(r"\p{N}{1,3}", r"\p{N}")
    tokenizer = recording.byte_level(texts, shape.text_pieces, split, normalizers.NFC())
    made = PreTrainedTokenizerFast(tokenizer_object=tokenizer, chat_template=CHAT, pad_token=PAD)
    for names, special in (
        (["<|im_start|>", "<|im_end|>"], True),
        (["<im_start>", "<im_end>"], True),
        ([f"<S{scale}>" for scale in range(len(shape.sides))], False),
        ([f"<I{code}>" for code in range(shape.codes)], False),
    ):
        made.add_tokens(names, special_tokens=special)
    made.save_pretrained(folder)


def make_model(shape: Shape, ids: int, seed: int) -> Qwen2ForCausalLM:
    """A model with weights that bf16 holds, and a few ids more than the tokenizer."""
    sizes = {
        "hidden_size": 32, "intermediate_size": 40, "num_hidden_layers": 2, "num_attention_heads": 4,
        "num_key_value_heads": 2, "max_position_embeddings": 512, "tie_word_embeddings": True,
        "vocab_size": ids + 3, **shape.model,
    }  # fmt: skip
    model = Qwen2ForCausalLM(Qwen2Config(**sizes))
    recording.draw(model, seed, wide=("bias",), table=shape.table, gain=shape.gain).tie_weights()
    return model


class Recorder:
    """Runs of one model."""

    def __init__(self, folder: Path, shape: Shape, seed: int) -> None:
        write_tokenizer(folder, shape)
        self.shape = shape
        self.tokenizer = PreTrainedTokenizerFast.from_pretrained(folder)
        self.model = make_model(shape, len(self.tokenizer), seed)
        recording.save_model(folder, self.model)
        (folder / "generation_config.json").write_text(json.dumps({"do_sample": True}))
        names = [f"<I{code}>" for code in range(shape.codes)]
        self.codes = self.tokenizer.convert_tokens_to_ids(names)

    def prompt(self, text: str, scale: int) -> Tensor:
        talk = [SYSTEM, {"role": "user", "content": text}]
        chat = self.tokenizer.apply_chat_template(talk, tokenize=False, add_generation_prompt=True)
        return self.tokenizer(f"{chat}<im_start><S{scale}>", return_tensors="pt").input_ids

    def generate(self, ids: Tensor, count: int, top_k: int) -> Any:
        return self.model.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            prefix_allowed_tokens_fn=lambda _, __: self.codes,
            output_logits=True,
            **recording.generation(count, top_k, top_p=self.shape.top_p),
        )

    def runs(self) -> recording.Runs:
        requests = (
            {"prompt": prompt, "grid": (side, side)}
            for side in self.shape.sides
            for prompt in CAPTIONS
        )
        return recording.runs_of(requests, self.shape.top_k, self.run)

    def run(self, request: recording.Facts, top_k: int) -> tuple[recording.Facts, recording.State]:
        side = request["grid"][0]
        ids = self.prompt(request["prompt"], self.shape.sides.index(side))
        result = self.generate(ids, side * side, top_k)
        scores = torch.cat(list(result.scores))[:, self.codes]
        logits = torch.cat(list(result.logits))[:, self.codes]
        tensors = {"ids": ids[0].int(), "tokens": result.sequences[0, ids.shape[1] :].int()}
        tensors |= {"scores": scores} if top_k else {"logits": logits}
        top_p = self.shape.top_p if top_k else 1.0
        return {"top_p": top_p, "margin": recording.least_margin(scores)}, tensors


@torch.inference_mode()
def record(out: Path, shape: Shape, seed: int) -> None:
    torch.manual_seed(seed)
    runs = Recorder(out / "model", shape, seed).runs()
    component = "Tar's language model from captions to codes: chat, generate() of codes alone"
    recording.write_case(out, component, shape, seed, runs, TOLERANCE)


if __name__ == "__main__":
    recording.run_recorder(__doc__.splitlines()[0], SHAPES, record)
