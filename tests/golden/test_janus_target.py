"""Janus-Pro's network, plain and as the engine runs it: prompts, cached steps, a tree of codes."""

from __future__ import annotations

from pathlib import Path

import golden_chameleon as chameleon
import golden_engine as engine
import pytest
import torch
from golden_cases import Case
from golden_chameleon import Target
from torch import Tensor

from models.export.janus.weights import Folder, read_folder
from models.janus.network import Janus

KINDS = ("families/janus_target",)
RUNS = ("a", "b")


@pytest.fixture(scope="module")
def files(case: Case) -> Folder:
    return read_folder(case.published)


@pytest.fixture(scope="module")
def plain(files: Folder) -> Janus:
    return Janus(files.weights.config, files.weights.read)


@pytest.fixture(scope="module")
def bundle(case: Case, files: Folder, tmp_path_factory: pytest.TempPathFactory) -> Path:
    longest = max(case.tensors[f"{run}.tokens"].shape[1] for run in RUNS)
    side = 2 * files.vq.config.downsample
    out = tmp_path_factory.mktemp("janus") / "bundle"
    images = engine.images_of([(side, side)], longest)
    return engine.export(out, "janus", images, "--dtype", "fp32", model=case.published)


@pytest.fixture(scope="module")
def first_code(files: Folder) -> int:
    return files.weights.config.text_ids


def fed_after_prompt(case: Case, run: str, first_code: int) -> Tensor:
    """Ids [2P,n] of the codes that were fed to both rows of every image."""
    return case.long(f"{run}.forced_tokens").repeat_interleave(2, 0) + first_code


def test_sizes(case: Case, files: Folder) -> None:
    """Also those that config.json leaves out."""
    names = {
        "text_ids": "text_vocab_size", "codes": "image_codes", "code_dim": "gen_embed_dim",
        "aligner_depth": "gen_aligner_depth", "head_width": "gen_head_inner",
    }  # fmt: skip
    chameleon.assert_sizes(files.weights.config, case.info["model"], **names)


def test_code_table(case: Case, plain: Janus, bundle: Path, first_code: int) -> None:
    """Codes through the aligner; the engine has them behind the text's ids."""
    expected = case.tensors["image_embedding_table"]
    engine.assert_close("plain", plain.codes, expected, 1e-5)
    target = engine.load_module(bundle, "target")
    ids = torch.arange(len(expected))[None] + first_code
    engine.assert_close("engine", target.embed(ids)[0], expected, 1e-5)


@pytest.mark.parametrize("run", RUNS)
@torch.inference_mode()
def test_plain_network(case: Case, plain: Janus, first_code: int, run: str) -> None:
    """Whole sequences without a cache."""
    prompt = case.long(f"{run}.tokens")
    ids = torch.cat([prompt, fed_after_prompt(case, run, first_code)], 1)
    length = prompt.shape[1]
    assert torch.equal(case.long(f"{run}.positions"), torch.arange(ids.shape[1]))
    seen = case.tensors[f"{run}.attention_mask"].bool()
    assert torch.equal(seen, torch.ones_like(seen).tril())  # padding is seen
    *layers, hidden = plain.trunk(ids)
    engine.assert_recorded(case, f"{run}.prefill_embeds", layers[0][:2, :length], 1e-5)
    engine.assert_recorded(case, f"{run}.prefill_hidden", hidden[:2, :length], "hidden")
    steps = hidden[:, length - 1 :].transpose(0, 1)
    engine.assert_recorded(case, f"{run}.hidden", steps, "hidden")
    logits, expected = plain.logits(steps), case.tensors[f"{run}.logits"]
    engine.assert_close("logits", logits, expected, case.tolerance("logits"))
    if case.has(f"{run}.prefill_layers"):
        got = torch.stack(layers)[:, :2, :length]
        engine.assert_recorded(case, f"{run}.prefill_layers", got, "hidden")


@pytest.mark.parametrize("run", RUNS)
@torch.inference_mode()
def test_target(case: Case, bundle: Path, first_code: int, run: str) -> None:
    """The prompt, then code by code with the cache."""
    prompt, codes = case.long(f"{run}.tokens"), fed_after_prompt(case, run, first_code)
    target = Target(bundle, len(prompt), prompt.shape[1] + codes.shape[1])
    engine.assert_recorded(case, f"{run}.prefill_embeds", target.module.embed(prompt)[:2], 1e-5)
    prefilled = torch.stack(target.prefill(list(prompt)))
    engine.assert_recorded(case, f"{run}.prefill_hidden", prefilled[:2], "hidden")
    if case.has(f"{run}.k_cache"):  # of the first image
        cache = target.cache[:, :, :2, :, : prompt.shape[1]]
        chameleon.assert_cache(case, f"{run}.k_cache", f"{run}.v_cache", cache, "cache")
    steps = [prefilled[:, -1], *(target.step(code) for code in codes.t())]
    hidden = torch.stack(steps)
    engine.assert_recorded(case, f"{run}.hidden", hidden, "hidden")
    logits = target.logits(hidden)
    engine.assert_recorded(case, f"{run}.logits", logits, "logits")
    conditional, unconditional = logits[:, 0::2], logits[:, 1::2]
    guided = unconditional + case.info["guidance"]["scale"] * (conditional - unconditional)
    engine.assert_recorded(case, f"{run}.guided_logits", guided, "guided_logits")


@torch.inference_mode()
def test_layers(case: Case, bundle: Path) -> None:
    """What every block gets, for drafters that read inner layers."""
    if not case.has("a.prefill_layers"):
        pytest.skip("no recorded layers")
    prompt, expected = case.long("a.tokens")[:2], case.tensors["a.prefill_layers"][:-1]
    got = Target(bundle, 2, prompt.shape[1]).layers(prompt, len(expected))
    engine.assert_close("layers", got, expected, case.tolerance("hidden"))


def packed_mask(seen: Tensor) -> Tensor:
    """bool [R,R] as the operator takes it: bits int64 [1,R,ceil(R/64)]."""
    words = -(-seen.shape[1] // 64)
    mask = torch.zeros(1, len(seen), words, dtype=torch.int64)
    for row, column in seen.nonzero().tolist():
        bit = 1 << column % 64
        mask[0, row, column // 64] |= bit if bit < 1 << 63 else bit - (1 << 64)
    return mask


@torch.inference_mode()
def test_tree(case: Case, plain: Janus, bundle: Path, first_code: int) -> None:
    """One pass over a tree of codes behind the prompt gives what every path gives by itself."""
    prompt = case.long("a.tokens")[:2]
    codes, seen = case.long("tree.tokens") + first_code, case.tensors["tree.mask"].bool()
    positions, length = case.long("tree.positions"), prompt.shape[1]
    target = Target(bundle, 2, length + len(codes))
    target.prefill(list(prompt))
    hidden = target.run(codes.expand(2, -1), positions.expand(2, -1), packed_mask(seen))
    allowed = case.tolerance("hidden"), case.tolerance("logits")
    expected = case.tensors["tree.hidden"], case.tensors["tree.logits"]
    rows = hidden.transpose(0, 1)
    engine.assert_close("hidden", rows, expected[0], allowed[0])
    engine.assert_close("logits", target.logits(rows), expected[1], allowed[1])

    whole = torch.ones(length + len(codes), length + len(codes), dtype=torch.bool).tril()
    whole[length:, length:] = seen
    ids = torch.cat([prompt, codes.expand(2, -1)], 1)
    hidden = plain.trunk(ids, whole, torch.cat([torch.arange(length), positions]))[-1]
    rows = hidden[:, length:].transpose(0, 1)
    engine.assert_close("plain hidden", rows, expected[0], allowed[0])
    engine.assert_close("plain logits", plain.logits(rows), expected[1], allowed[1])
