"""Records a case of Emu3: transformers draws a small random model, generates and decodes with it.

    python3 -m venv VENV && VENV/bin/pip install -r tests/golden/record_emu3_requirements.txt
    VENV/bin/python tests/golden/record_emu3.py OUT [--shape NAME] [--seed N]

OUT gets case.json, io.safetensors and the folder of the model in transformers' layout, less what only
reads images.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import recording
import torch
from tokenizers import AddedToken
from torch import Tensor
from transformers import (
    AutoTokenizer,
    Emu3Config,
    Emu3ForConditionalGeneration,
    Emu3ImageProcessor,
    Emu3Processor,
)

CAPTIONS = (
    "a red boat on the sea",
    "  Ein süßer Käfer, 35mm photo\n",
    "two dogs 🐕 and <|image end|>",
)
NEGATIVES = ("lowres, bad anatomy, blurry.", "", "fog")
SPECIAL = {
    "image_token": "<image>", "boi_token": "<|image start|>", "eoi_token": "<|image end|>",
    "image_wrapper_token": "<|image token|>", "eof_token": "<|extra_201|>",
}  # fmt: skip
NAMED = {"bos_token": "<|extra_203|>", "eos_token": "<|extra_204|>", "pad_token": "<|endoftext|>"}
ROW_END = "<|extra_200|>"
TOLERANCE = {"logits": 1e-4, "image": 1e-4, "probabilities": 1e-4}


@dataclass(frozen=True)
class Shape:
    """Sizes of a model and of the images it generates, in rows and columns of codes."""

    grids: tuple[tuple[int, int], ...] = ((3, 4), (4, 2))
    text: dict[str, Any] = field(default_factory=dict)
    vq: dict[str, Any] = field(default_factory=dict)
    guidance: float = 3.0
    top_k: int = 8
    text_pieces: int = 300

    @property
    def codes(self) -> int:
        return int(self.vq.get("codebook_size", 40))


SHAPES = {
    "tiny": Shape(),
    "wide": Shape(
        grids=((5, 7), (2, 9)),
        text={"hidden_size": 64, "num_hidden_layers": 3, "num_attention_heads": 8, "intermediate_size": 96},
        vq={"codebook_size": 300, "channel_multiplier": [1, 2, 2], "num_res_blocks": 2,
            "attn_resolutions": [2], "hidden_size": 64},
        top_k=64,
    ),
    "deep": Shape(
        grids=((6, 6),),
        text={"num_hidden_layers": 6, "num_key_value_heads": 4, "rms_norm_eps": 1e-6,
              "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0}},
        vq={"codebook_size": 64, "channel_multiplier": [1, 1, 1, 1], "temporal_downsample_factor": 8,
            "attn_resolutions": [1, 3]},
        guidance=1.5,
    ),
    "narrow": Shape(
        grids=((4, 5), (1, 5)),
        text={"hidden_size": 24, "num_attention_heads": 2, "num_key_value_heads": 1, "num_hidden_layers": 1},
        vq={"codebook_size": 17, "embed_dim": 6, "latent_channels": 6, "channel_multiplier": [1],
            "temporal_downsample_factor": 1, "attn_resolutions": []},
        guidance=7.0, top_k=3,
    ),
}  # fmt: skip


def write_tokenizer(folder: Path, shape: Shape) -> None:
    """A byte-level tokenizer in the form of transformers' converted one."""
    texts = [*CAPTIONS, *NEGATIVES, "90*90 12*34 " * 5] * 3
    tokenizer = recording.byte_level(texts, shape.text_pieces)
    codes = [f"<|visual token {code:06d}|>" for code in range(shape.codes)]
    names = [*NAMED.values(), ROW_END, *SPECIAL.values(), *codes]
    tokenizer.add_special_tokens(
        [AddedToken(name, normalized=False, special=True) for name in names]
    )
    folder.mkdir(parents=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    settings = {"tokenizer_class": "GPT2Tokenizer", "extra_special_tokens": SPECIAL, **NAMED}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))


def make_model(shape: Shape, vocabulary: dict[str, int], seed: int) -> Emu3ForConditionalGeneration:
    ids = {name.replace("token", "token_id"): vocabulary[tag] for name, tag in NAMED.items()}
    text = {
        "hidden_size": 32, "intermediate_size": 40, "num_hidden_layers": 2, "num_attention_heads": 4,
        "num_key_value_heads": 2, "max_position_embeddings": 512, "vocab_size": len(vocabulary), **ids,
        **shape.text,
    }  # fmt: skip
    vq = {
        "codebook_size": shape.codes, "base_channels": 32, "channel_multiplier": [1, 1],
        "num_res_blocks": 1, "attn_resolutions": [1], "hidden_size": 32, **shape.vq,
    }  # fmt: skip
    config = Emu3Config(text_config=text, vq_config=vq, vocabulary_map=vocabulary)
    return recording.draw(Emu3ForConditionalGeneration(config), seed)


def allowed(
    vocabulary: dict[str, int], rows: int, columns: int
) -> Callable[[int, Tensor], list[int]]:
    """The ids that may follow, by the number of ids behind the tag in front of the image."""
    codes = [number for name, number in vocabulary.items() if name.startswith("<|visual token")]
    image, row_end = vocabulary[SPECIAL["image_wrapper_token"]], vocabulary[ROW_END]
    tags = (SPECIAL["eof_token"], SPECIAL["eoi_token"], NAMED["eos_token"])
    end = [vocabulary[tag] for tag in tags]

    def by_position(_: int, ids: Tensor) -> list[int]:
        done = len(ids) - int((ids == image).nonzero()[0]) - 1
        if done >= rows * (columns + 1):
            return [end[min(done - rows * (columns + 1), 2)]]
        return [row_end] if done % (columns + 1) == columns else codes

    return by_position


class Recorder:
    """Runs of one model."""

    def __init__(self, folder: Path, shape: Shape, seed: int) -> None:
        write_tokenizer(folder, shape)
        self.shape, self.tokenizer = shape, AutoTokenizer.from_pretrained(folder)
        half = [0.5] * 3
        images = Emu3ImageProcessor(image_mean=half, image_std=half)
        self.processor = Emu3Processor(images, self.tokenizer)
        self.vocabulary = self.tokenizer.get_vocab()
        self.model = make_model(shape, self.vocabulary, seed)
        recording.save_model(folder, self.model, ("vqmodel.encoder.", "vqmodel.quant_conv."))
        names = [f"<|visual token {code:06d}|>" for code in range(shape.codes)]
        self.codes = torch.tensor([self.vocabulary[name] for name in names])

    def prompt(self, text: str, rows: int, columns: int) -> Tensor:
        size = {"ratio": f"{columns}:{rows}", "image_area": 64 * rows * columns}
        found = self.processor(
            text=[text], return_for_image_generation=True, return_tensors="pt", **size
        )
        assert [list(size) for size in found["image_sizes"]] == [[rows, columns]]
        return found["input_ids"]

    def generate(self, pair: tuple[Tensor, Tensor], rows: int, columns: int, top_k: int) -> Any:
        return self.model.generate(
            pair[0],
            attention_mask=torch.ones_like(pair[0]),
            negative_prompt_ids=pair[1],
            negative_prompt_attention_mask=torch.ones_like(pair[1]),
            guidance_scale=self.shape.guidance,
            prefix_allowed_tokens_fn=allowed(self.vocabulary, rows, columns),
            **recording.generation(rows * (columns + 1) + 3, top_k),
        )

    def logits(self, prompt: Tensor, tokens: Tensor) -> Tensor:
        """Of the codes, in front of every generated token."""
        ids = torch.cat([prompt[0], tokens])[None]
        return self.model(ids).logits[0, prompt.shape[1] - 1 : -1][:, self.codes]

    def runs(self) -> recording.Runs:
        requests = (
            {"prompt": prompt, "negative_prompt": negative, "grid": grid, "guidance": self.shape.guidance}
            for grid in self.shape.grids
            for prompt, negative in zip(CAPTIONS, NEGATIVES, strict=True)
        )  # fmt: skip
        return recording.runs_of(requests, self.shape.top_k, self.run)

    def run(self, request: recording.Facts, top_k: int) -> tuple[recording.Facts, recording.State]:
        grid = request["grid"]
        texts = request["prompt"], request["negative_prompt"]
        pair = self.prompt(texts[0], *grid), self.prompt(texts[1], *grid)
        result = self.generate(pair, *grid, top_k)
        tokens = result.sequences[0, pair[0].shape[1] :]
        scores = torch.cat(list(result.scores))[:, self.codes]
        pixels = self.model.decode_image_tokens(
            image_tokens=tokens[None], height=grid[0], width=grid[1]
        )
        levels = self.processor.postprocess(pixels, return_tensors="np")["pixel_values"]
        tensors = {
            "ids": pair[0][0].int(), "negative_ids": pair[1][0].int(), "tokens": tokens.int(),
            "logits": self.logits(pair[0], tokens), "negative_logits": self.logits(pair[1], tokens),
            "image": pixels[0], "levels": torch.as_tensor(levels).view(pixels.shape[1:]),
        }  # fmt: skip
        if top_k:
            tensors["scores"] = scores
        return {"margin": recording.least_margin(scores)}, tensors


@torch.inference_mode()
def record(out: Path, shape: Shape, seed: int) -> None:
    torch.manual_seed(seed)
    runs = Recorder(out / "model", shape, seed).runs()
    component = "Emu3 from captions to pixels: processor, generate() with allowed ids, decoder"
    recording.write_case(out, component, shape, seed, runs, TOLERANCE)


if __name__ == "__main__":
    recording.run_recorder(__doc__.splitlines()[0], SHAPES, record)
