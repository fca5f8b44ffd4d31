"""Records a case of Chameleon's texts: transformers draws a small random model and describes pictures with it.

    python3 -m venv VENV && VENV/bin/pip install -r tests/golden/record_chameleon_requirements.txt
    VENV/bin/python tests/golden/record_chameleon.py OUT [--shape NAME] [--seed N]

OUT gets case.json, io.safetensors and the folder of the model in the published layout. Pixels are scaled to
[-1, 1], as Meta's program does it; transformers' processor multiplies by 0.0078 in place of 2 / 255.
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
    ChameleonConfig,
    ChameleonForConditionalGeneration,
    ChameleonImageProcessorPil,
    ChameleonProcessor,
    PreTrainedTokenizerFast,
)

QUESTIONS = ("What is in the picture?", "Écris trois mots 🐕, please:\n", "")
SIDE, COUNT = 64, 24  # pixels of a picture, ids of an answer
FIRST = ("<s>", "<pad>", "</s>", "<unk>")
BEHIND = ("<eoss>", "<racm3:break>")
SEPARATOR, IMAGE = "<reserved08706>", "<image>"
TOLERANCE = {"logits": 2e-4}


@dataclass(frozen=True)
class Shape:
    codes: int = 40
    text_pieces: int = 300
    model: dict[str, Any] = field(default_factory=dict)
    vq: dict[str, Any] = field(default_factory=dict)


SHAPES = {
    "tiny": Shape(),
    "swin": Shape(codes=64, model={"swin_norm": True, "num_key_value_heads": 2, "num_hidden_layers": 3}),
}  # fmt: skip


def code_name(code: int) -> str:
    return "IMGIMG" + "".join("ABCDEFGHIJ"[int(digit)] for digit in str(code)) + "Z"


def make_tokenizer(shape: Shape) -> Tokenizer:
    """A byte-level tokenizer whose codes have the ids from 4 on, as the published one's have."""
    content = json.loads(recording.byte_level([*QUESTIONS] * 3, shape.text_pieces).to_str())
    first = [*FIRST, *map(code_name, range(shape.codes)), *BEHIND]
    pieces = content["model"]["vocab"]
    content["model"]["vocab"] = {name: number for number, name in enumerate(first)} | {
        piece: len(first) + number for piece, number in pieces.items()
    }
    tokenizer = Tokenizer.from_str(json.dumps(content))
    names = [*FIRST, *BEHIND, SEPARATOR, IMAGE]
    tokenizer.add_special_tokens([AddedToken(n, normalized=False, special=True) for n in names])
    return tokenizer


def make_model(
    shape: Shape, vocabulary: dict[str, int], seed: int
) -> ChameleonForConditionalGeneration:
    vq = {"embed_dim": 16, "num_embeddings": shape.codes, "latent_channels": 32, "resolution": SIDE,
          "base_channels": 32, "channel_multiplier": [1, 1, 1, 1, 1], "num_res_blocks": 1, **shape.vq}  # fmt: skip
    config = ChameleonConfig(**{
        "vocab_size": len(vocabulary), "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2,
        "num_attention_heads": 4, "num_key_value_heads": 4, "max_position_embeddings": 256,
        "bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2,
        "vocabulary_map": vocabulary, "vq_config": vq, **shape.model,
    })  # fmt: skip
    return recording.draw(ChameleonForConditionalGeneration(config), seed, wide=("bias",))


class Recorder:
    def __init__(self, folder: Path, shape: Shape, seed: int) -> None:
        tokenizer = make_tokenizer(shape)
        self.model = make_model(shape, tokenizer.get_vocab(), seed)
        recording.save_model(folder, self.model)
        tokenizer.save(str(folder / "tokenizer.json"))
        self.tokenizer = PreTrainedTokenizerFast(tokenizer_object=tokenizer, sep_token=SEPARATOR)
        pixels = ChameleonImageProcessorPil(
            size={"shortest_edge": SIDE}, crop_size={"height": SIDE, "width": SIDE}
        )
        self.processor = ChameleonProcessor(pixels, self.tokenizer, (SIDE // 16) ** 2)
        self.random = torch.Generator().manual_seed(seed)

    def picture(self) -> Tensor:
        """uint8 [SIDE,SIDE,3]: coarse random colours."""
        coarse = torch.rand(1, 3, 5, 5, generator=self.random)
        fine = torch.nn.functional.interpolate(coarse, (SIDE, SIDE), mode="bilinear")
        return (255 * fine[0]).round().byte().permute(1, 2, 0)

    def runs(self) -> recording.Runs:
        for number, question in enumerate(QUESTIONS):
            facts, tensors = self.run(question)
            name = f"greedy_{number}"
            yield (
                {"run": name, "question": question, **facts},
                {f"{name}.{part}": tensor for part, tensor in tensors.items()},
            )

    def run(self, question: str) -> tuple[recording.Facts, recording.State]:
        picture = self.picture()
        inputs = self.processor(
            images=[picture.numpy()], text=[f"<s>{question}{IMAGE}"], return_tensors="pt"
        )
        pixels = (picture.float() / 127.5 - 1).permute(2, 0, 1)[None]
        assert torch.allclose(inputs["pixel_values"], pixels, atol=0.02)
        inputs["pixel_values"] = pixels
        ids = inputs["input_ids"]
        tokens_of_image = self.model.model.get_image_tokens(pixels).flatten()
        embedded = ids.clone()
        embedded[ids == self.tokenizer.convert_tokens_to_ids(IMAGE)] = tokens_of_image.to(ids)
        result = self.model.generate(**inputs, output_logits=True, **recording.generation(COUNT, 0))
        tokens = result.sequences[0, ids.shape[1] :]
        logits = torch.cat(list(result.logits))
        return (
            {
                "text": self.tokenizer.decode(tokens, skip_special_tokens=True),
                "margin": recording.least_margin(logits),
                "code_margin": self.code_margin(pixels),
            },
            {
                "picture": picture,
                "codes": (tokens_of_image - len(FIRST)).int(),
                "ids": embedded[0].int(),
                "tokens": tokens.int(),
                "logits": logits,
            },
        )

    def code_margin(self, pixels: Tensor) -> float:
        """The least difference of squared distances to the nearest and the second row of the codebook."""
        vq = self.model.model.vqmodel
        latents = vq.quant_conv(vq.encoder(pixels)).flatten(2)[0].T
        distances = torch.cdist(latents, vq.quantize.embedding.weight).square()
        two = distances.topk(2, largest=False).values
        return float((two[:, 1] - two[:, 0]).min())


@torch.inference_mode()
def record(out: Path, shape: Shape, seed: int) -> None:
    torch.manual_seed(seed)
    runs = Recorder(out / "model", shape, seed).runs()
    component = (
        "Chameleon from pictures and questions to texts: image tokens, prompt, greedy generate()"
    )
    recording.write_case(out, component, shape, seed, runs, TOLERANCE)


if __name__ == "__main__":
    recording.run_recorder(__doc__.splitlines()[0], SHAPES, record)
