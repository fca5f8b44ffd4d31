"""Records a case of GLM-Image: transformers draws a small random model and generates codes with it.

    python3 -m venv VENV && VENV/bin/pip install -r tests/golden/record_glm_image_requirements.txt
    VENV/bin/python tests/golden/record_glm_image.py OUT [--shape NAME] [--seed N]

OUT gets case.json, io.safetensors and the folder of the model in the published layout, less what only reads
images.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import recording
import torch
from tokenizers import AddedToken, Tokenizer
from torch import Tensor
from transformers import (
    AutoTokenizer,
    GlmImageConfig,
    GlmImageForConditionalGeneration,
    GlmImageImageProcessorPil,
    GlmImageProcessor,
)

CAPTIONS = (
    "a red boat on the sea",
    "  Ein süßer Käfer, 35mm photo\n",
    "two dogs 🐕 and <eop> 2024",
)
NAMED = {"image_token": "<|image|>", "grid_bos_token": "<sop>", "grid_eos_token": "<eop>"}
PAD = "<|endoftext|>"
TOLERANCE = {"logits": 1e-4, "probabilities": 1e-4}


@dataclass(frozen=True)
class Shape:
    """Sizes of a model and of the image it generates, in rows and columns of codes."""

    grid: tuple[int, int] = (3, 5)
    codes: int = 24
    more_ids: int = 8  # of the head, behind the codes
    text: dict[str, Any] = field(default_factory=dict)
    rope: dict[str, Any] = field(default_factory=dict)
    top_k: int = 8
    text_pieces: int = 300
    ignore_merges: bool = True


SHAPES = {
    "tiny": Shape(),
    "wide": Shape(
        grid=(7, 4), codes=200, top_k=64,
        text={"hidden_size": 96, "num_attention_heads": 4, "num_key_value_heads": 1, "num_hidden_layers": 3},
        rope={"partial_rotary_factor": 0.5, "mrope_section": [2, 2, 2]},
    ),
    "whole": Shape(
        grid=(4, 4), codes=33, more_ids=2, ignore_merges=False,
        text={"hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 4, "num_hidden_layers": 5,
              "rms_norm_eps": 1e-6},
        rope={"partial_rotary_factor": 1.0, "mrope_section": [3, 1, 4], "rope_theta": 500.0},
    ),
    "around": Shape(
        grid=(2, 6),
        text={"hidden_size": 64, "num_attention_heads": 2, "intermediate_size": 20},
        rope={"partial_rotary_factor": 0.75, "mrope_section": [4, 3, 3, 1, 1]},
    ),
}  # fmt: skip


def write_tokenizer(folder: Path, shape: Shape) -> None:
    """A byte-level tokenizer whose first ids are codes, as the published one's are."""
    texts = [*CAPTIONS, "36 24 19 13 " * 5] * 3
    tokenizer = recording.byte_level(texts, shape.text_pieces, recording.SPLIT)
    content = json.loads(tokenizer.to_str())
    codes = [f"<|dit_token_{code}|>" for code in range(shape.codes + shape.more_ids)]
    pieces = content["model"]["vocab"]
    content["model"]["vocab"] = dict(zip(codes, range(len(codes)))) | {
        piece: len(codes) + number for piece, number in pieces.items()
    }
    content["model"]["ignore_merges"] = shape.ignore_merges
    tokenizer = Tokenizer.from_str(json.dumps(content))
    tokenizer.add_special_tokens(
        [AddedToken(n, normalized=False, special=True) for n in [*codes, PAD, *NAMED.values()]]
    )
    folder.mkdir(parents=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "extra_special_tokens": NAMED, "pad_token": PAD,
                "bos_token": codes[shape.codes]}  # fmt: skip
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))


def make_model(
    shape: Shape, vocabulary: dict[str, int], seed: int
) -> GlmImageForConditionalGeneration:
    rope = {"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.5,
            "mrope_section": [1, 2, 1], **shape.rope}  # fmt: skip
    text = {
        "hidden_size": 32, "intermediate_size": 40, "num_hidden_layers": 2, "num_attention_heads": 2,
        "num_key_value_heads": 1, "max_position_embeddings": 512, "vocab_size": len(vocabulary),
        "vision_vocab_size": shape.codes + shape.more_ids, "pad_token_id": vocabulary[PAD],
        "eos_token_id": shape.codes + 1, "rope_parameters": rope, **shape.text,
    }  # fmt: skip
    config = GlmImageConfig(
        text_config=text,
        vision_config={"depth": 1, "hidden_size": 16, "num_heads": 2, "intermediate_size": 16, "image_size": 32},
        vq_config={"num_embeddings": shape.codes, "embed_dim": 8, "latent_channels": 16},
        image_token_id=vocabulary["<|image|>"],
        image_start_token_id=shape.codes,
        image_end_token_id=shape.codes + 1,
    )  # fmt: skip
    return recording.draw(GlmImageForConditionalGeneration(config), seed, wide=("bias",))


class Recorder:
    """Runs of one model."""

    def __init__(self, folder: Path, shape: Shape, seed: int) -> None:
        write_tokenizer(folder / "processor", shape)
        self.shape, self.tokenizer = shape, AutoTokenizer.from_pretrained(folder / "processor")
        self.processor = GlmImageProcessor(GlmImageImageProcessorPil(), self.tokenizer)
        self.model = make_model(shape, self.tokenizer.get_vocab(), seed)
        model = folder / "vision_language_encoder"
        recording.save_model(model, self.model, ("model.visual.", "model.vqmodel."))
        sampling = {"do_sample": True, "temperature": 0.9, "top_p": 0.75}
        (model / "generation_config.json").write_text(json.dumps(sampling))

    def inputs(self, text: str) -> dict[str, Tensor]:
        rows, columns = self.shape.grid
        found = self.processor(
            text=[text], target_h=32 * rows, target_w=32 * columns, return_tensors="pt"
        )
        return dict(found)

    def generate(self, inputs: dict[str, Tensor], count: int, top_k: int) -> Any:
        codes = list(range(self.shape.codes))
        return self.model.generate(
            **inputs,
            prefix_allowed_tokens_fn=lambda _, __: codes,
            output_logits=True,
            **recording.generation(count, top_k),
        )

    def runs(self) -> recording.Runs:
        requests = ({"prompt": prompt, "grid": self.shape.grid} for prompt in CAPTIONS)
        return recording.runs_of(requests, self.shape.top_k, self.run)

    def run(self, request: recording.Facts, top_k: int) -> tuple[recording.Facts, recording.State]:
        inputs = self.inputs(request["prompt"])
        sides = inputs["image_grid_thw"][:, 1:]
        assert sides[0].tolist() == list(self.shape.grid)
        result = self.generate(inputs, int(sides.prod(1).sum()), top_k)
        scores = torch.cat(list(result.scores))[:, : self.shape.codes]
        tensors = {
            "ids": inputs["input_ids"][0].int(),
            "preview": sides[1].int(),
            "tokens": result.sequences[0, inputs["input_ids"].shape[1] :].int(),
        }
        logits = torch.cat(list(result.logits))[:, : self.shape.codes]
        tensors |= {"scores": scores} if top_k else {"logits": logits}
        return {"margin": recording.least_margin(scores)}, tensors


@torch.inference_mode()
def record(out: Path, shape: Shape, seed: int) -> None:
    torch.manual_seed(seed)
    runs = Recorder(out / "model", shape, seed).runs()
    component = "GLM-Image from captions to codes: processor, generate() of codes alone"
    recording.write_case(out, component, shape, seed, runs, TOLERANCE)


if __name__ == "__main__":
    recording.run_recorder(__doc__.splitlines()[0], SHAPES, record)
