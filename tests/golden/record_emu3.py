"""Records a case of Emu3: transformers draws a small random model, generates and decodes with it.

    python3 -m venv VENV && VENV/bin/pip install -r tests/golden/record_emu3_requirements.txt
    VENV/bin/python tests/golden/record_emu3.py OUT [--shape NAME] [--seed N]

OUT gets case.json, io.safetensors and the folder of the model in transformers' layout, less what only
reads images.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
from torch import Tensor
from transformers import (
    AutoTokenizer,
    Emu3Config,
    Emu3ForConditionalGeneration,
    Emu3ImageProcessor,
    Emu3Processor,
)
from write_case import run_recorder, write_case

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
State = dict[str, Tensor]


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
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=shape.text_pieces,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator([*CAPTIONS, *NEGATIVES, "90*90 12*34 " * 5] * 3, trainer)
    codes = [f"<|visual token {code:06d}|>" for code in range(shape.codes)]
    names = [*NAMED.values(), ROW_END, *SPECIAL.values(), *codes]
    tokenizer.add_special_tokens(
        [AddedToken(name, normalized=False, special=True) for name in names]
    )
    folder.mkdir(parents=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    settings = {"tokenizer_class": "GPT2Tokenizer", "extra_special_tokens": SPECIAL, **NAMED}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))


def draw(shape: Shape, vocabulary: dict[str, int], seed: int) -> Emu3ForConditionalGeneration:
    """A model with weights that bf16 holds."""
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
    model = Emu3ForConditionalGeneration(config).eval()
    random = torch.Generator().manual_seed(seed)
    for name, tensor in sorted(model.state_dict().items()):
        if tensor.is_floating_point():
            tensor.copy_(drawn(name, tensor, random).bfloat16().float())
    return model


def drawn(name: str, tensor: Tensor, random: torch.Generator) -> Tensor:
    """Numbers that keep the size of what passes, so that no part can be left out unseen."""
    noise = torch.randn(tensor.shape, generator=random)
    if name.endswith("running_var"):
        return 0.5 + noise.abs()
    if "embed" in name:
        return noise
    if tensor.dim() > 1:
        return noise * tensor[0].numel() ** -0.5
    is_scale = "norm" in name and name.endswith("weight")
    return (1.0 if is_scale else 0.0) + 0.1 * noise


def save_model(folder: Path, model: Emu3ForConditionalGeneration) -> None:
    """In bf16, without the half of the image tokenizer that reads images."""
    model.save_pretrained(folder)
    state = load_file(folder / "model.safetensors")
    unused = ("vqmodel.encoder.", "vqmodel.quant_conv.")
    kept = {
        name: tensor.bfloat16() if tensor.is_floating_point() else tensor
        for name, tensor in state.items()
        if not name.startswith(unused)
    }
    save_file(kept, folder / "model.safetensors", {"format": "pt"})


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
        self.model = draw(shape, self.vocabulary, seed)
        save_model(folder, self.model)
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
        count = rows * (columns + 1) + 3
        sampling = {"do_sample": True, "top_k": top_k} if top_k else {"do_sample": False}
        return self.model.generate(
            pair[0],
            attention_mask=torch.ones_like(pair[0]),
            negative_prompt_ids=pair[1],
            negative_prompt_attention_mask=torch.ones_like(pair[1]),
            guidance_scale=self.shape.guidance,
            prefix_allowed_tokens_fn=allowed(self.vocabulary, rows, columns),
            max_new_tokens=count,
            min_new_tokens=count,
            return_dict_in_generate=True,
            output_scores=True,
            **sampling,
        )

    def logits(self, prompt: Tensor, tokens: Tensor) -> Tensor:
        """Of the codes, in front of every generated token."""
        ids = torch.cat([prompt[0], tokens])[None]
        return self.model(ids).logits[0, prompt.shape[1] - 1 : -1][:, self.codes]

    def runs(self) -> Iterator[tuple[dict[str, Any], State]]:
        texts = [
            (*pair, grid)
            for grid in self.shape.grids
            for pair in zip(CAPTIONS, NEGATIVES, strict=True)
        ]
        for number, (prompt, negative, grid) in enumerate(texts):
            for top_k in (0, self.shape.top_k)[: 2 if number == 0 else 1]:
                name = f"{'sampled' if top_k else 'greedy'}_{number}"
                facts = {"run": name, "prompt": prompt, "negative_prompt": negative,
                         "grid": grid, "guidance": self.shape.guidance, "top_k": top_k}  # fmt: skip
                tensors, margin = self.run(prompt, negative, grid, top_k)
                yield facts | {"margin": margin}, {f"{name}.{k}": v for k, v in tensors.items()}

    def run(
        self, prompt: str, negative: str, grid: tuple[int, int], top_k: int
    ) -> tuple[State, float]:
        """Tensors, and the least distance of a score from the second best one."""
        pair = self.prompt(prompt, *grid), self.prompt(negative, *grid)
        result = self.generate(pair, *grid, top_k)
        tokens = result.sequences[0, pair[0].shape[1] :]
        scores = torch.cat(list(result.scores))[:, self.codes]
        best = scores[scores.isfinite().any(-1)].topk(2).values
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
        return tensors, float((best[:, 0] - best[:, 1]).min())


@torch.inference_mode()
def record(out: Path, shape: Shape, seed: int) -> None:
    torch.manual_seed(seed)
    runs = Recorder(out / "model", shape, seed).runs()
    component = "Emu3 from captions to pixels: processor, generate() with allowed ids, decoder"
    write_case(out, component, shape, seed, runs, TOLERANCE)


if __name__ == "__main__":
    run_recorder(__doc__.splitlines()[0], SHAPES, record)
