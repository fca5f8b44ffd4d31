"""Records a case of Emu3.5: the official program draws a small random model, generates and decodes with it.

    python3 -m venv VENV && VENV/bin/pip install -r tests/golden/record_emu35_requirements.txt
    git clone https://github.com/baaivision/Emu3.5 EMU
    PYTHONPATH=EMU VENV/bin/python tests/golden/record_emu35.py OUT [--shape NAME] [--seed N]

OUT gets case.json, io.safetensors and the folders of the model, with its tokenizer, and of the image tokenizer,
less what only reads images.
"""

from __future__ import annotations

import base64
import contextlib
import importlib
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np
import recording
import torch
from omegaconf import OmegaConf
from src.emu3p5 import Emu3Config, Emu3ForCausalLM
from src.tokenizer_emu3_ibq import tokenization_emu3
from src.utils import generation_utils, logits_processor
from src.vision_tokenizer.ibq import IBQ
from tiktoken._educational import bpe_train
from torch import Tensor
from transformers import GenerationConfig
from transformers.generation import LogitsProcessorList

CAPTIONS = (
    "a red boat on the sea",
    "  Ein süßer Käfer, 35mm photo\n",
    "two dogs 🐕 and <|image end|>",
)
# Tokens in front of the codes, which the second file of the tokenizer lists.
TAGS = ("<|image token|>", "<|image start|>", "<|image end|>")
# Constants of the program -> the tokens whose ids they are in the small tokenizer.
CONSTANTS = {
    "BOS": "<|extra_203|>", "EOS": "<|extra_204|>", "IMG": TAGS[0], "BOI": TAGS[1], "EOI": TAGS[2],
    "EOL": "<|extra_200|>", "EOF": "<|extra_201|>", "BOV": "<|visual token 000000|>",
}  # fmt: skip
TOLERANCE = {"logits": 1e-4, "image": 1e-4, "probabilities": 1e-4}
CODEBOOK_WIDTH = 256  # the program's
HEAD_NORMS = ("q_norm.weight", "k_norm.weight")


@dataclass(frozen=True)
class Shape:
    """Sizes of a model and of the images it generates, in rows and columns of codes."""

    grids: tuple[tuple[int, int], ...] = ((3, 4), (4, 2))
    codes: int = 40
    text: dict[str, Any] = field(default_factory=dict)
    vq: dict[str, Any] = field(default_factory=dict)
    guidance: float = 5.0
    top_k: int = 8
    text_pieces: int = 300


SHAPES = {
    "tiny": Shape(),
    "wide": Shape(
        grids=((5, 7), (2, 9)), codes=300, top_k=64,
        text={"hidden_size": 48, "num_hidden_layers": 3, "num_attention_heads": 8, "intermediate_size": 96,
              "head_dim": 24},
        vq={"ch_mult": [1, 2, 2], "num_res_blocks": 2, "attn_resolutions": [8]},
    ),
    "deep": Shape(
        grids=((6, 6),), codes=64, guidance=1.5,
        text={"num_hidden_layers": 6, "num_key_value_heads": 4, "rms_norm_eps": 1e-6, "rope_theta": 10000.0,
              "head_dim": 4},
        vq={"ch_mult": [1, 1, 1, 1], "attn_resolutions": [16, 4], "z_channels": 8},
    ),
    "narrow": Shape(
        grids=((4, 5), (1, 5)), codes=17, guidance=7.0, top_k=3,
        text={"hidden_size": 24, "num_attention_heads": 2, "num_key_value_heads": 1, "num_hidden_layers": 1,
              "head_dim": 12},
        vq={"ch_mult": [1], "attn_resolutions": []},
    ),
}  # fmt: skip


def published_settings() -> ModuleType:
    """The configuration of text to image, which makes a folder for its results and replaces `print`."""
    with (
        tempfile.TemporaryDirectory() as folder,
        contextlib.chdir(folder),
        mock.patch("builtins.print"),
    ):
        return importlib.import_module("configs.example_config_t2i")


def write_tokenizer(folder: Path, shape: Shape, texts: str) -> Any:
    """The two files of a small tokenizer, and the program's reader of them."""
    pattern = tokenization_emu3.PAT_STR
    ranks = bpe_train(texts, shape.text_pieces, pattern, visualise=None)
    lines = [f"{base64.b64encode(token).decode()} {rank}\n" for token, rank in ranks.items()]
    codes = [f"<|visual token {code:06d}|>" for code in range(shape.codes)]
    folder.mkdir(parents=True)
    vocabulary, special = folder / "emu3.tiktoken", folder / "emu3_vision_tokens.txt"
    vocabulary.write_text("".join(lines))
    special.write_text("\n".join([*TAGS, *codes]) + "\n")
    tokenization_emu3.SPECIAL_START_ID = len(ranks)
    tokenizer = tokenization_emu3.Emu3Tokenizer(str(vocabulary), special_tokens_file=str(special))
    tokenizer.eol_token = CONSTANTS["EOL"]
    for name, token in CONSTANTS.items():
        setattr(logits_processor, name, tokenizer.special_tokens[token])
    return tokenizer


def make_network(folder: Path, shape: Shape, tokenizer: Any, seed: int) -> Emu3ForCausalLM:
    """The network, and its folder in bf16."""
    special = tokenizer.special_tokens
    text = {
        "hidden_size": 32, "intermediate_size": 40, "num_hidden_layers": 2, "num_attention_heads": 4,
        "num_key_value_heads": 2, "head_dim": 16, "max_position_embeddings": 512, **shape.text,
    }  # fmt: skip
    ids = {"pad_token_id": special["<|endoftext|>"], "bos_token_id": special[CONSTANTS["BOS"]],
           "eos_token_id": special[CONSTANTS["EOS"]]}  # fmt: skip
    config = Emu3Config(vocab_size=len(tokenizer), attn_implementation="eager", **text, **ids)
    model = recording.draw(Emu3ForCausalLM(config), seed, wide=HEAD_NORMS)
    recording.save_model(folder, model)
    return model


def make_image_tokenizer(folder: Path, shape: Shape, seed: int) -> IBQ:
    """The image tokenizer, and its folder in bf16 without the half that reads images."""
    network = {
        "double_z": False, "z_channels": 32, "resolution": 32, "in_channels": 3, "out_ch": 3, "ch": 32,
        "ch_mult": [1, 1], "num_res_blocks": 1, "attn_resolutions": [16], "dropout": 0.0, **shape.vq,
    }  # fmt: skip
    settings = {
        "embed_dim": CODEBOOK_WIDTH,
        "n_embed": shape.codes,
        "beta": 0.25,
        "ddconfig": network,
    }
    model = recording.draw(IBQ(**settings), seed + 1, wide=HEAD_NORMS)
    folder.mkdir()
    OmegaConf.save(OmegaConf.create(settings), folder / "config.yaml")
    unused = ("encoder.", "quant_conv.")
    state = {k: v.bfloat16() for k, v in model.state_dict().items() if not k.startswith(unused)}
    torch.save({"state_dict": state}, folder / "model.ckpt")
    return model


class Recorder:
    """Runs of one model."""

    def __init__(self, out: Path, shape: Shape, seed: int) -> None:
        self.shape, self.published = shape, published_settings()
        texts = [self.text(caption) for caption in CAPTIONS]
        corpus = "\n".join([*texts, self.published.unc_prompt, "55*73 64*64 "] * 3)
        self.tokenizer = write_tokenizer(out / "model", shape, corpus)
        self.network = make_network(out / "model", shape, self.tokenizer, seed)
        self.vq = make_image_tokenizer(out / "vq", shape, seed)
        names = [f"<|visual token {code:06d}|>" for code in range(shape.codes)]
        self.codes = torch.tensor([self.tokenizer.special_tokens[name] for name in names])

    def text(self, caption: str) -> str:
        return str(self.published.template.format(question=caption))

    def ids(self, text: str) -> Tensor:
        return self.tokenizer.encode(text, return_tensors="pt", add_special_tokens=False)

    def settings(self, rows: int, columns: int, sampled: bool) -> SimpleNamespace:
        """The published configuration with what is the small model's."""
        values = {k: v for k, v in vars(self.published).items() if not k.startswith("_")}
        size = len(self.ids(f"{rows}*{columns}")[0])
        sampling = {
            **self.published.sampling_params, "image_top_k": self.shape.top_k, "do_sample": sampled,
            "max_new_tokens": size + 1 + rows * (columns + 1), "output_scores": True,
            "return_dict_in_generate": True,
        }  # fmt: skip
        own = {"classifier_free_guidance": self.shape.guidance, "sampling_params": sampling,
               "target_height": rows, "target_width": columns}  # fmt: skip
        return SimpleNamespace(**{**values, **own})

    def generate(self, caption: str, rows: int, columns: int, sampled: bool) -> tuple[Any, Tensor]:
        """What the program generates behind a prompt that begins the image, and the other prompt with it."""
        begin = torch.tensor([[logits_processor.BOI]])
        prompt = torch.cat([self.ids(self.text(caption)), begin], 1)
        settings = self.settings(rows, columns, sampled)
        processor = generation_utils.build_logits_processor(
            settings, self.ids(self.published.unc_prompt), self.network, self.tokenizer
        )
        config = self.network.config
        result = self.network.generate(
            prompt,
            GenerationConfig(
                **settings.sampling_params,
                pad_token_id=config.pad_token_id,
                eos_token_id=config.eos_token_id,
            ),
            logits_processor=LogitsProcessorList([processor]),
        )
        return result, processor.unconditional_context["input_ids"][0]

    def logits(self, prompt: Tensor, tokens: Tensor) -> Tensor:
        """Of the codes, in front of every generated token."""
        ids = torch.cat([prompt, tokens])[None]
        return self.network(ids, use_cache=False).logits[0, len(prompt) - 1 : -1][:, self.codes]

    def runs(self) -> recording.Runs:
        requests = (
            {"prompt": prompt, "negative_prompt": "", "grid": grid, "guidance": self.shape.guidance}
            for grid in self.shape.grids
            for prompt in CAPTIONS
        )
        return recording.runs_of(requests, self.shape.top_k, self.run)

    def run(self, request: recording.Facts, top_k: int) -> tuple[recording.Facts, recording.State]:
        rows, columns = request["grid"]
        count = rows * (columns + 1)
        result, other = self.generate(request["prompt"], rows, columns, bool(top_k))
        ids, tokens = result.sequences[0][:-count], result.sequences[0][-count:]
        other = other[: 1 - count]  # the last token is not fed
        assert other[-1] == ids[-1] == logits_processor.IMG and tokens[-1] == logits_processor.EOI
        scores = torch.cat(list(result.scores))[-count:, self.codes]
        codes = tokens.view(rows, columns + 1)[:, :-1] - self.codes[0]
        pixels = self.vq.decode_code(codes[None], shape=(1, rows, columns, CODEBOOK_WIDTH))
        text = self.tokenizer.decode(tokens)
        levels = torch.from_numpy(
            np.array(generation_utils.decode_image(text, self.tokenizer, self.vq))
        ).permute(2, 0, 1)
        tensors = {
            "ids": ids.int(), "negative_ids": other.int(), "tokens": tokens.int(),
            "logits": self.logits(ids, tokens), "negative_logits": self.logits(other, tokens),
            "image": pixels[0], "levels": levels.float(),
        }  # fmt: skip
        if top_k:
            tensors["scores"] = scores
        return {"margin": recording.least_margin(scores)}, tensors


@torch.inference_mode()
def record(out: Path, shape: Shape, seed: int) -> None:
    torch.manual_seed(seed)
    runs = Recorder(out, shape, seed).runs()
    component = (
        "Emu3.5 from captions to pixels: prompts, generate() with its logits processor, decoder"
    )
    recording.write_case(out, component, shape, seed, runs, TOLERANCE)


if __name__ == "__main__":
    recording.run_recorder(__doc__.splitlines()[0], SHAPES, record)
