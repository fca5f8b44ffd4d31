"""Records a case of Janus-Pro in the layout of transformers, which draws a small random model and generates with it.

    python3 -m venv VENV && VENV/bin/pip install -r tests/golden/record_janus_converted_requirements.txt
    VENV/bin/python tests/golden/record_janus_converted.py OUT [--shape NAME] [--seed N]

OUT gets case.json, io.safetensors and the folder of the model, less what only reads images.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import recording
import torch
from tokenizers import AddedToken
from torch import Tensor
from transformers import (
    GenerationConfig,
    JanusConfig,
    JanusForConditionalGeneration,
    PreTrainedTokenizerFast,
)

CAPTIONS = (
    "a red boat on the sea",
    "Ein süßer Käfer, 35mm photo",
    "two dogs 🐕 and <end_of_image>",
)
TAGS = {
    "bos_token": "<｜begin▁of▁sentence｜>", "eos_token": "<｜end▁of▁sentence｜>", "pad_token": "<｜▁pad▁｜>",
    "image_token": "<image_placeholder>", "boi_token": "<begin_of_image>", "eoi_token": "<end_of_image>",
}  # fmt: skip
# What the published template makes of a user's message, and the processor's begin of an image.
PROMPT = "{bos_token}<|User|>: {{caption}}\n\n<|Assistant|>:{boi_token}".format(**TAGS)
UNUSED = (
    "model.vision_model.", "model.aligner.", "lm_head.", "model.vqmodel.encoder.", "model.vqmodel.quant_conv.",
)  # fmt: skip
PATCH = 16  # pixels that the reading half takes for a code
TOLERANCE = {"logits": 1e-4, "image": 1e-4}


@dataclass(frozen=True)
class Shape:
    """Sizes of a model and of the square image it generates, in codes a side."""

    side: int = 3
    codes: int = 40
    text: dict[str, Any] = field(default_factory=dict)
    vq: dict[str, Any] = field(default_factory=dict)
    guidance: float = 5.0
    text_pieces: int = 300


SHAPES = {
    "tiny": Shape(),
    "wide": Shape(
        side=6, codes=300,
        text={"hidden_size": 96, "num_hidden_layers": 3, "num_attention_heads": 6, "num_key_value_heads": 3},
        vq={"channel_multiplier": [1, 2, 2], "num_res_blocks": 2, "num_hidden_layers": 3, "embed_dim": 12},
    ),
    "deep": Shape(
        side=4, codes=64, guidance=1.5,
        text={"num_hidden_layers": 5, "rms_norm_eps": 1e-5,
              "rope_parameters": {"rope_type": "default", "rope_theta": 500.0}},
        vq={"channel_multiplier": [1], "num_hidden_layers": 1, "latent_channels": 64},
    ),
}  # fmt: skip


def write_tokenizer(folder: Path, shape: Shape) -> PreTrainedTokenizerFast:
    """A small tokenizer with the published tags."""
    tokenizer = recording.byte_level(
        [*CAPTIONS, "User Assistant : | <>\n\n"] * 3, shape.text_pieces
    )
    tokenizer.add_special_tokens([AddedToken(tag, normalized=False) for tag in TAGS.values()])
    folder.mkdir(parents=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **TAGS)


def make_model(shape: Shape, ids: int, seed: int) -> JanusForConditionalGeneration:
    text = {
        "model_type": "llama", "hidden_size": 32, "intermediate_size": 40, "num_hidden_layers": 2,
        "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 512,
        "vocab_size": ids + 3, **shape.text,
    }  # fmt: skip
    width = text["hidden_size"]
    vq = {
        "num_embeddings": shape.codes, "base_channels": 32, "channel_multiplier": [1, 1], "num_res_blocks": 1,
        "latent_channels": 32, "projection_dim": width, "image_token_embed_dim": width, **shape.vq,
    }  # fmt: skip
    vision = {
        "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "projection_dim": width,
        "image_size": PATCH * shape.side, "patch_size": PATCH, "num_image_tokens": shape.side**2,
    }  # fmt: skip
    config = JanusConfig(
        text_config=text, vision_config=vision, vq_config=vq, tie_word_embeddings=False
    )
    return recording.draw(JanusForConditionalGeneration(config), seed, wide=("bias",))


class Recorder:
    """Runs of one model."""

    def __init__(self, folder: Path, shape: Shape, seed: int) -> None:
        self.shape, self.tokenizer = shape, write_tokenizer(folder, shape)
        self.model = make_model(shape, len(self.tokenizer), seed)
        recording.save_model(folder, self.model, UNUSED)
        (folder / "generation_config.json").unlink(missing_ok=True)

    def prompt(self, caption: str) -> Tensor:
        text = PROMPT.format(caption=caption)
        return self.tokenizer(text, return_tensors="pt", add_special_tokens=False).input_ids

    def without_caption(self, ids: Tensor) -> Tensor:
        """The other half of guidance, as generate() makes it."""
        kept = [self.tokenizer.convert_tokens_to_ids(TAGS[n]) for n in ("bos_token", "boi_token")]
        pad = self.tokenizer.convert_tokens_to_ids(TAGS["pad_token"])
        return torch.where(torch.isin(ids, torch.tensor(kept)), ids, pad)

    def generate(self, ids: Tensor) -> Tensor:
        tags = {f"{n}_id": self.tokenizer.convert_tokens_to_ids(TAGS[n]) for n in TAGS}
        config = GenerationConfig(
            do_sample=False, guidance_scale=self.shape.guidance, pad_token_id=tags["pad_token_id"],
            bos_token_id=tags["bos_token_id"], max_length=ids.shape[1] + self.shape.side**2,
            generation_kwargs={"boi_token_id": tags["boi_token_id"]},
        )  # fmt: skip
        mask = torch.ones_like(ids)
        made: Tensor = self.model.generate(
            ids, attention_mask=mask, generation_mode="image", generation_config=config
        )
        return made[0]

    def logits(self, ids: Tensor, codes: Tensor) -> Tensor:
        """In front of every code."""
        prompt = self.model.get_input_embeddings()(ids)
        image = self.model.prepare_embeddings_for_image_generation(codes[None, :-1])
        found = self.model.model.language_model(inputs_embeds=torch.cat([prompt, image], 1))
        hidden = found.last_hidden_state[0, ids.shape[1] - 1 :]
        result: Tensor = self.model.model.generation_head(hidden)
        return result

    def runs(self) -> recording.Runs:
        for number, caption in enumerate(CAPTIONS):
            name, side = f"greedy_{number}", self.shape.side
            ids = self.prompt(caption)
            other, codes = self.without_caption(ids), self.generate(ids)
            halves = self.logits(ids, codes), self.logits(other, codes)
            guided = halves[1] + (halves[0] - halves[1]) * self.shape.guidance
            pixels = self.model.decode_image_tokens(codes[None])[0].permute(2, 0, 1)
            tensors = {
                "ids": ids[0].int(), "negative_ids": other[0].int(), "codes": codes.int(),
                "logits": halves[0], "negative_logits": halves[1], "image": pixels,
            }  # fmt: skip
            facts = {"run": name, "prompt": caption, "grid": [side, side], "guidance": self.shape.guidance,
                     "margin": recording.least_margin(guided)}  # fmt: skip
            yield facts, {f"{name}.{part}": tensor for part, tensor in tensors.items()}


@torch.inference_mode()
def record(out: Path, shape: Shape, seed: int) -> None:
    torch.manual_seed(seed)
    runs = Recorder(out / "model", shape, seed).runs()
    component = "Janus-Pro in transformers' layout from captions to pixels: generate(), decoder"
    recording.write_case(out, component, shape, seed, runs, TOLERANCE)


if __name__ == "__main__":
    recording.run_recorder(__doc__.splitlines()[0], SHAPES, record)
