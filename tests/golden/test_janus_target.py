"""Janus-Pro's network, plain and as the engine runs it: prompts, cached steps, a tree of codes."""

from __future__ import annotations

from pathlib import Path

import golden_chameleon as chameleon
import golden_engine as engine
import golden_janus as janus
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
    return read_folder(janus.folder(case))


@pytest.fixture(scope="module")
def plain(files: Folder) -> Janus:
    return Janus(files.weights.config, files.weights.read)


@pytest.fixture(scope="module")
def bundle(case: Case, files: Folder, tmp_path_factory: pytest.TempPathFactory) -> Path:
    longest = max(case.tensors[f"{run}.tokens"].shape[1] for run in RUNS)
    side = 2 * files.vq.config.downsample
    out = tmp_path_factory.mktemp("janus") / "bundle"
    return janus.export(out, janus.folder(case), [(side, side)], longest)


@pytest.fixture(scope="module")
def first_code(files: Folder) -> int:
    return files.weights.config.text_ids


def fed_after_prompt(case: Case, run: str, first_code: int) -> Tensor:
    """Ids [2P,n] of the codes that were fed to both rows of every image."""
    return case.long(f"{run}.forced_tokens").repeat_interleave(2, 0) + first_code


def test_sizes(case: Case, files: Folder) -> None:
    """Also those that config.json leaves out."""
    config, facts = files.weights.config, case.info["model"]
    names = {
        "dim": "hidden_size", "n_layer": "layers", "n_head": "heads", "n_kv_head": "kv_heads",
        "head_dim": "head_dim", "ffn_dim": "ffn_size", "text_ids": "text_vocab_size",
        "norm_eps": "rms_norm_eps", "rope_base": "rope_theta", "codes": "image_codes",
        "code_dim": "gen_embed_dim", "aligner_depth": "gen_aligner_depth",
        "head_width": "gen_head_inner",
    }  # fmt: skip
    for own, name in names.items():
        if name in facts:
            assert getattr(config, own) == facts[name], name


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
    allowed = case.tolerance("hidden")
    expected = case.tensors[f"{run}.prefill_embeds"]
    engine.assert_close("embeddings", layers[0][:2, :length], expected, 1e-5)
    expected = case.tensors[f"{run}.prefill_hidden"]
    engine.assert_close("prompt", hidden[:2, :length], expected, allowed)
    steps = hidden[:, length - 1 :].transpose(0, 1)
    engine.assert_close("hidden", steps, case.tensors[f"{run}.hidden"], allowed)
    logits, expected = plain.logits(steps), case.tensors[f"{run}.logits"]
    engine.assert_close("logits", logits, expected, case.tolerance("logits"))
    if case.has(f"{run}.prefill_layers"):
        got = torch.stack(layers)[:, :2, :length]
        engine.assert_close("layers", got, case.tensors[f"{run}.prefill_layers"], allowed)


@pytest.mark.parametrize("run", RUNS)
@torch.inference_mode()
def test_target(case: Case, bundle: Path, first_code: int, run: str) -> None:
    """The prompt, then code by code with the cache."""
    prompt, codes = case.long(f"{run}.tokens"), fed_after_prompt(case, run, first_code)
    target = Target(bundle, len(prompt), prompt.shape[1] + codes.shape[1])
    expected = case.tensors[f"{run}.prefill_embeds"]
    engine.assert_close("embeddings", target.module.embed(prompt)[:2], expected, 1e-5)
    prefilled = torch.stack(target.prefill(list(prompt)))
    allowed = case.tolerance("hidden")
    expected = case.tensors[f"{run}.prefill_hidden"]
    engine.assert_close("prompt", prefilled[:2], expected, allowed)
    assert_cache(case, run, target.cache)
    steps = [prefilled[:, -1], *(target.step(code) for code in codes.t())]
    hidden = torch.stack(steps)
    engine.assert_close("hidden", hidden, case.tensors[f"{run}.hidden"], allowed)
    logits = target.logits(hidden)
    engine.assert_close("logits", logits, case.tensors[f"{run}.logits"], case.tolerance("logits"))
    conditional, unconditional = logits[:, 0::2], logits[:, 1::2]
    guided = unconditional + case.info["guidance"]["scale"] * (conditional - unconditional)
    expected = case.tensors[f"{run}.guided_logits"]
    engine.assert_close("guided", guided, expected, case.tolerance("guided_logits"))


def assert_cache(case: Case, run: str, cache: Tensor) -> None:
    """Keys after the rotation, and values, of the first image's prompt."""
    if not case.has(f"{run}.k_cache"):
        return
    length = case.tensors[f"{run}.tokens"].shape[1]
    keys, values = cache[:, :, :2, :, :length].unbind(1)
    allowed = case.tolerance("cache")
    expected = chameleon.adjacent(case.tensors[f"{run}.k_cache"])
    engine.assert_close("keys", keys, expected, allowed)
    engine.assert_close("values", values, case.tensors[f"{run}.v_cache"], allowed)


@torch.inference_mode()
def test_layers(case: Case, bundle: Path) -> None:
    """What every block gets, for drafters that read inner layers."""
    if not case.has("a.prefill_layers"):
        pytest.skip("no recorded layers")
    prompt, expected = case.long("a.tokens")[:2], case.tensors["a.prefill_layers"]
    target = Target(bundle, 2, prompt.shape[1])
    blocks = torch.arange(len(expected) - 1)
    _, features = target.module.forward_features(
        target.module.embed(prompt), torch.arange(prompt.shape[1]).expand_as(prompt).contiguous(),
        torch.empty(0, dtype=torch.int64), target.lengths, target.cache, blocks,
    )  # fmt: skip
    got = features.unflatten(-1, (len(blocks), -1)).permute(2, 0, 1, 3)
    engine.assert_close("layers", got, expected[:-1], case.tolerance("hidden"))


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
