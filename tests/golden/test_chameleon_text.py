"""Texts about pictures: Chameleon's image tokens, logits and greedy answers against transformers'."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import golden_engine as engine
import pytest
import torch
from golden_cases import Case
from golden_chameleon import Target
from PIL import Image
from safetensors.torch import load_file, save_file

from models.chameleon.vqgan import VQGAN, VQGANConfig

KINDS = ("chameleon_text",)
METHODS = ("ar", "self", "ngram", "lookahead", "sjd", "scd", "sjd-pac")


def ids_of(tokenizer: dict[str, int], codes: int) -> dict[str, int]:
    """The exporter's token ids for a small vocabulary; no row ends in it."""
    return {
        "codebook_size": codes,
        "end_of_image": tokenizer["<eoss>"],
        "begin_of_image": tokenizer["<racm3:break>"],
        "separator": tokenizer["<reserved08706>"],
    }


def completed(case: Case, folder: Path) -> Path:
    """The model with a decoder among its weights, as Anole's folder has it; transformers knows none."""
    shutil.copytree(case.folder / "model", folder)
    torch.manual_seed(0)
    shape = VQGANConfig(
        ch=32, ch_mult=(1,) * 5, num_res_blocks=1, z_channels=32, embed_dim=16,
        n_embed=case.info["shape"]["codes"],
    )  # fmt: skip
    decoder = {
        f"model.vqmodel.{name}": tensor.contiguous()
        for name, tensor in VQGAN(shape, encoder=False).state_dict().items()
        if name.startswith(("decoder.", "post_quant_conv."))
    }
    file = folder / "model.safetensors"
    save_file({**load_file(file), **decoder}, file)
    return folder


def export(case: Case, out: Path, *words: object) -> Path:
    pieces = engine.pieces(case.folder / "model" / "tokenizer.json")
    side = case.tensors["greedy_0.picture"].shape[0]
    config: dict[str, Any] = {
        **engine.images_of([(side, side)], 60),
        "tokens": ids_of(pieces, case.info["shape"]["codes"]),
    }
    model = completed(case, out.parent / "model")
    return engine.export(
        out, "chameleon", config, "--text", "--dtype", "fp32", *words, model=model, vq=model
    )


@pytest.fixture(scope="module")
def bundle(case: Case, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return export(case, tmp_path_factory.mktemp("text") / "bundle")


def test_entry(case: Case, bundle: Path) -> None:
    """The prompt has the ids that transformers' processor gives; the answer ends with its ends."""
    pieces = engine.pieces(case.folder / "model" / "tokenizer.json")
    text = engine.manifest(bundle)["text"]
    for run in case.info["runs"]:
        ids, codes = case.long(f"{run['run']}.ids"), case.long(f"{run['run']}.codes")
        behind = [*text["before_image"], *(4 + codes).tolist(), *text["after_image"]]
        behind += text["suffix"]
        assert ids[-len(behind) :].tolist() == behind
        assert ids[: len(text["prefix"])].tolist() == text["prefix"]
    assert text["stop"] == [pieces["<reserved08706>"], pieces["</s>"]]
    assert text["length"] == 256


@torch.inference_mode()
def test_codes(case: Case, bundle: Path) -> None:
    module = engine.load_module(bundle, "image_encoder")
    for run in case.info["runs"]:
        rgb = case.tensors[f"{run['run']}.picture"].float().permute(2, 0, 1)[None] / 127.5 - 1
        codes = module.nearest(module.latents(rgb.contiguous()))
        assert torch.equal(codes.flatten(), case.long(f"{run['run']}.codes")), run["run"]


@torch.inference_mode()
def test_logits(case: Case, bundle: Path) -> None:
    """Of all ids but the codes of images, id by id with the cache."""
    codes = case.info["shape"]["codes"]
    for run in case.info["runs"]:
        name = run["run"]
        tokens, prompt = case.long(f"{name}.tokens"), case.long(f"{name}.ids")
        target = Target(bundle, 1, len(prompt) + len(tokens))
        hidden = [target.prefill([prompt])[0][-1:]]
        hidden += [target.step(token) for token in tokens[:-1]]
        got = target.module.text_logits(torch.stack(hidden, 1).contiguous())[0]
        recorded = case.tensors[f"{name}.logits"]
        expected = torch.cat([recorded[:, :4], recorded[:, 4 + codes :]], -1)
        assert recorded.shape[-1] == got.shape[-1] + codes
        tolerance = case.info["tolerance"]["logits"]
        engine.assert_close(f"{name} logits", got, expected, tolerance)
        assert tolerance < run["margin"]


def test_check(bundle: Path) -> None:
    engine.check(bundle)


def describe(case: Case, bundle: Path, folder: Path, run: dict[str, Any], *words: object) -> Any:
    """What the program answers, greedily."""
    picture = folder / f"{run['run']}.png"
    Image.fromarray(case.tensors[f"{run['run']}.picture"].numpy()).save(picture)
    out = engine.run(
        engine.BUILD / "lamplighter", "describe", picture, "-m", bundle, "-p", run["question"], "--device",
        "cpu", "--dtype", "fp32", "--temperature", 0, "--max-tokens",
        len(case.tensors[f"{run['run']}.tokens"]), *words,
    )  # fmt: skip
    return out


@pytest.mark.parametrize("method", METHODS)
def test_describe(case: Case, bundle: Path, tmp_path: Path, method: str) -> None:
    """Whole answers are equal, by every method."""
    for run in case.info["runs"]:
        found = json.loads(describe(case, bundle, tmp_path, run, "--json", "--method", method))
        assert found["text"] == run["text"], run["run"]
        assert found["finish_reason"] == "length" and found["method"] == method
        assert found["prompt_tokens"] == len(case.tensors[f"{run['run']}.ids"])


def test_describe_streams(case: Case, bundle: Path, tmp_path: Path) -> None:
    run = case.info["runs"][0]
    assert describe(case, bundle, tmp_path, run) == run["text"] + "\n"
