"""Training of EAGLE drafters: data, objectives, measured acceptance, resuming."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import count
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor

from models.eagle import data, train
from models.eagle.config import DrafterConfig
from models.eagle.drafter import Drafter
from models.eagle.features import load_target
from models.eagle.losses import (
    Weights,
    acceptance,
    chain_compression,
    draft,
    filtered,
    guided_logits,
    make_batch,
    objective,
    token_loss,
    top_loss,
)
from models.eagle.train import RECIPES, Trainer, evaluate, new_drafter
from models.export.checkpoint import ExportError

GRID, PROMPT, TOKENS, VOCABULARY, WIDTH = 4, 3, 16, 12, 16
CONFIG = DrafterConfig(
    hidden=WIDTH, heads=2, ffn=32, vocabulary=VOCABULARY, max_length=PROMPT + TOKENS, grid=GRID,
    prompt_length=PROMPT,
)  # fmt: skip


def toy_model() -> SimpleNamespace:
    """A target whose feature is the embedding of its last token, and whose law follows from it."""
    generator = torch.Generator().manual_seed(1)
    return SimpleNamespace(
        embedding=torch.randn(VOCABULARY, WIDTH, generator=generator),
        head=torch.randn(VOCABULARY, WIDTH, generator=generator) * 0.7,
        guidance=2.0,
        manifest={"sampling": {"top_k": 8}, "tokens": {"first_image_id": 0}},
    )


def toy_pictures(number: int, seed: int) -> dict[str, Tensor]:
    """Pictures drawn from the toy target; the unconditional features are half the conditional ones."""
    model, generator = toy_model(), torch.Generator().manual_seed(seed)
    codes = torch.randint(VOCABULARY, (number, TOKENS), generator=generator)
    for i in range(1, TOKENS):
        logits = 1.5 * model.embedding[codes[:, i - 1]] @ model.head.T
        codes[:, i] = filtered(logits, 8).multinomial(1, generator=generator).squeeze(1)
    prompt = torch.randn(number, PROMPT, WIDTH, generator=generator)
    rows = torch.cat([prompt, model.embedding[codes[:, :-1]]], 1)
    features = torch.stack([rows, rows / 2], 1).bfloat16()
    return {
        "features": features,
        "inner": torch.cat([features, -features], -1),
        "layers": torch.tensor([0, 2]),
        "codes": codes.int(),
        "valid": torch.full((number,), PROMPT).int(),
    }


@pytest.fixture
def steady_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every training step takes 50 ms, so that the number of steps does not depend on the machine."""
    ticks = count()
    monkeypatch.setattr("models.eagle.train.time.monotonic", lambda: 0.05 * next(ticks))


@pytest.fixture
def toy_data(tmp_path: Path) -> Path:
    for shard in range(2):
        save_file(toy_pictures(24, shard), data.shard_path(tmp_path, "features", shard))
    return tmp_path


def test_rows_pair_features_with_the_next_token() -> None:
    features = torch.arange(PROMPT + TOKENS - 1).float().view(1, 1, -1, 1)
    codes = 100 + torch.arange(TOKENS)[None]
    batch = make_batch(features, codes, torch.tensor([PROMPT]), PROMPT, prompts=7)
    assert batch.roots == TOKENS - 1
    assert batch.ids[0].tolist() == [7] * (PROMPT - 1) + codes[0].tolist()
    # From the last prompt row, one step predicts the feature of token 0, the law of token 1.
    for step in (1, 3):
        assert int(batch.targets(step)[0, 0, 0]) == PROMPT - 1 + step
        assert int(batch.tokens(step)[0, 0]) == 100 + step
        assert batch.targets(step).shape[1] == batch.tokens(step).shape[1] == TOKENS - step


def test_filter_keeps_the_most_probable() -> None:
    logits = torch.tensor([0.0, 3.0, 1.0, 2.0])
    assert filtered(logits, 2).nonzero().flatten().tolist() == [1, 3]
    torch.testing.assert_close(filtered(logits, 0), logits.softmax(-1))


def test_phases_follow_one_another() -> None:
    options = RECIPES["multi-step"]
    assert [options.phase(share).steps for share in (0.0, 0.49, 0.5, 0.99, 1.0)] == [1, 1, 4, 4, 4]


def test_token_losses() -> None:
    target, logits = torch.randn(5, VOCABULARY), torch.randn(5, VOCABULARY)
    p, q = target.softmax(-1), logits.softmax(-1)
    entropy = -(p * q.log()).sum(-1).mean()
    rate = 1 - 0.5 * (p - q).abs().sum(-1)  # one minus the total variation distance
    torch.testing.assert_close(token_loss(logits, target, 0.0), entropy)
    torch.testing.assert_close(token_loss(logits, target, 1.0), -rate.log().mean())
    mixed = token_loss(logits, target, 0.25)
    torch.testing.assert_close(mixed, 0.75 * entropy - 0.25 * rate.log().mean())


def test_top_loss_reads_the_most_probable_tokens() -> None:
    target, logits = torch.randn(5, VOCABULARY), torch.randn(5, VOCABULARY)
    p, log_q = target.softmax(-1), logits.log_softmax(-1)
    best = p.argsort(-1, descending=True)[:, :10]
    expected = -torch.stack([(p[i, best[i]] * log_q[i, best[i]]).sum() for i in range(5)])
    torch.testing.assert_close(top_loss(logits, target), expected.mean())
    counted = torch.tensor([True, False, True, False, False])
    torch.testing.assert_close(top_loss(logits, target, counted), expected[counted].mean())


def test_top_loss_is_part_of_the_objective() -> None:
    model, pictures = toy_model(), toy_pictures(4, 5)
    batch = make_batch(
        pictures["features"].float(), pictures["codes"], pictures["valid"], PROMPT, 0
    )
    drafter = Drafter(CONFIG)
    law = guided_logits(batch.targets(1), model.head, 2, model.guidance)
    hidden = next(draft(drafter, batch, 1))
    expected = top_loss(guided_logits(hidden, model.head, 2, model.guidance), law)
    weights = Weights(feature=0.0, token=0.0, top=2.0)
    total, _ = objective(drafter, batch, model.head, model.guidance, weights, 1)
    torch.testing.assert_close(total, 2 * expected)


def test_guided_objective_sees_the_guided_laws() -> None:
    """With features that are right after guidance alone, only the guided loss reaches the entropy."""
    model, pictures = toy_model(), toy_pictures(4, 5)
    batch = make_batch(
        pictures["features"].float(), pictures["codes"], pictures["valid"], PROMPT, 0
    )
    law = guided_logits(batch.targets(1), model.head, 2, model.guidance)
    conditional = guided_logits(batch.targets(1)[0::2], model.head, 1, model.guidance)
    torch.testing.assert_close(law, 1.5 * conditional, atol=1e-4, rtol=1e-4)
    torch.manual_seed(1)
    drafter = Drafter(CONFIG)
    losses = {}
    for guided in (True, False):
        weights = Weights(feature=0.0, token=1.0, guided=guided)
        total, parts = objective(drafter, batch, model.head, model.guidance, weights, 2)
        assert float(total.detach()) == pytest.approx((parts[0] + 0.8 * parts[1]) / 1.8, rel=1e-5)
        losses[guided] = parts[0]
    hidden = next(draft(drafter, batch, 1))
    expected = token_loss(guided_logits(hidden, model.head, 2, model.guidance), law, 0.0)
    assert losses[True] == pytest.approx(float(expected.detach()), rel=1e-5)
    assert losses[True] != pytest.approx(losses[False], rel=1e-3)


def test_acceptance_is_the_overlap_of_the_laws() -> None:
    model, pictures = toy_model(), toy_pictures(2, 6)
    batch = make_batch(
        pictures["features"].float(), pictures["codes"], pictures["valid"], PROMPT, 0
    )
    torch.manual_seed(0)
    drafter = Drafter(CONFIG)
    rates, kept = acceptance(drafter, batch, model.head, model.guidance, 8, steps=2)
    assert rates.shape == kept.shape == (2, TOKENS - 1, 2)
    assert rates[:, -1, 1].isnan().all() and not kept[:, -1, 1].any()
    assert int(rates.isnan().sum()) == 2
    with torch.no_grad():
        second = list(draft(drafter, batch, 2))[1]
    root, law = 3, guided_logits(batch.targets(2), model.head, 2, model.guidance)
    p = filtered(law[1, root], 8).double()
    q = filtered(guided_logits(second, model.head, 2, model.guidance)[1, root], 8).double()
    assert float(rates[1, root, 1]) == pytest.approx(float(torch.minimum(p, q).sum()), rel=1e-5)
    token = int(pictures["codes"][1, root + 2])
    assert float(kept[1, root, 1]) == pytest.approx(min(1.0, float(q[token] / p[token])), rel=1e-5)


def test_chains_of_perfect_and_useless_drafts() -> None:
    roots, steps = 11, 3  # 12 tokens: one from the prompt's pass, 4 from every further one
    kept = torch.ones(2, roots, steps)
    for step in range(steps):
        kept[:, roots - step :, step] = 0
    assert chain_compression(kept) == pytest.approx(12 / 4)
    assert chain_compression(torch.zeros(2, roots, steps)) == pytest.approx(1.0)


def test_chain_compression_equals_simulated_decoding() -> None:
    rng = np.random.default_rng(8)
    roots, steps = 13, 3
    kept = rng.random((roots, steps))
    for step in range(steps):
        kept[roots - step :, step] = 0
    passes = []
    for _ in range(20000):
        root, used = 0, 1
        while root < roots:
            accepted = 0
            while accepted < steps and rng.random() < kept[root, accepted]:
                accepted += 1
            root, used = root + accepted + 1, used + 1
        passes.append(used)
    expected = (roots + 1) / np.mean(passes)
    assert chain_compression(torch.tensor(kept)[None]) == pytest.approx(expected, rel=0.02)


@pytest.mark.usefixtures("steady_clock")
@pytest.mark.parametrize("recipe", RECIPES)
def test_training_learns_the_toy_target(recipe: str, toy_data: Path, tmp_path: Path) -> None:
    """The toy target's law follows from the last token alone, so that drafts can be nearly perfect."""
    options = replace(RECIPES[recipe], batch=8, warm_up=5, minutes=0.05)
    pictures = data.Pictures(toy_data, CONFIG, held_out=8)
    start = new_drafter(recipe, toy_model(), CONFIG, pictures)  # type: ignore[arg-type]
    trainer = Trainer(toy_model(), start, options, tmp_path / "drafter.pt")  # type: ignore[arg-type]
    before = evaluate(trainer.drafter, trainer.model, pictures, steps=2)
    trainer.run(pictures)
    after = trainer.reports[-1]
    assert after["rates"][0] > before["rates"][0] + 0.2
    assert after["chains"][2] > before["chains"][2]
    saved = torch.load(tmp_path / "drafter.pt", weights_only=True)
    drafter = new_drafter(recipe, toy_model(), CONFIG, pictures)  # type: ignore[arg-type]
    drafter.load_state_dict(saved["model"])
    frozen = torch.equal(drafter.embed_tokens.weight, toy_model().embedding)
    assert frozen == (recipe in ("published", "hass"))


@pytest.mark.usefixtures("steady_clock")
def test_stopped_training_continues(toy_data: Path, tmp_path: Path) -> None:
    file = tmp_path / "drafter.pt"
    options = replace(RECIPES["guided"], minutes=0.01, batch=8)
    pictures = data.Pictures(toy_data, CONFIG, held_out=8)
    first = Trainer(toy_model(), Drafter(CONFIG), options, file)  # type: ignore[arg-type]
    first.run(pictures)
    longer = replace(options, minutes=0.02)
    second = Trainer(toy_model(), Drafter(CONFIG), longer, file)  # type: ignore[arg-type]
    assert second.step == first.step > 0 and second.seconds == first.seconds
    for one, two in zip(first.drafter.parameters(), second.drafter.parameters()):
        assert torch.equal(one, two)
    second.run(pictures)
    assert second.step > first.step and len(second.reports) == len(first.reports) + 1
    wider = replace(CONFIG, ffn=40)
    with pytest.raises(ExportError, match="another drafter"):
        Trainer(toy_model(), Drafter(wider), options, file)  # type: ignore[arg-type]


def test_held_out_pictures_are_not_trained_on(toy_data: Path) -> None:
    pictures = data.Pictures(toy_data, CONFIG, held_out=8)
    assert len(pictures) == 40
    held = {tuple(row[0].tolist()) for b in pictures.held_out_batches(3) for row in b.features[::2]}
    batches = pictures.batches(8, torch.Generator().manual_seed(0))
    seen = [tuple(row[0].tolist()) for _ in range(5) for row in next(batches).features[::2]]
    first = [tuple(x) for s in pictures.shards for x in s["features"][:, 0, 0].tolist()]
    assert len(set(first)) == len(first)
    assert held == set(first[:8]) and sorted(seen) == sorted(first[8:])


def test_data_of_the_demo_bundle(
    tmp_path: Path, demo_bundle: Path, build_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tokens that the engine drew are as probable under the stored features as its law says."""
    monkeypatch.setattr("sys.argv", ["data", "--bundle", str(demo_bundle), "--captions", "demo",
        "--out", str(tmp_path), "--images", "4", "--build", str(build_dir)])  # fmt: skip
    threads = torch.get_num_threads()
    assert data.main() == 0
    torch.set_num_threads(threads)
    (shard,) = data.load_shards(tmp_path)
    model = load_target(demo_bundle)
    batch = make_batch(
        shard["features"].float(), shard["codes"], shard["valid"], model.prompt_length, 0
    )
    log_p = guided_logits(batch.targets(1), model.head, 2, model.guidance).log_softmax(-1)
    surprise = -log_p.gather(-1, batch.tokens(1)[..., None]).mean()
    entropy = -(log_p.exp() * log_p).sum(-1).mean()
    assert float(surprise) == pytest.approx(float(entropy), abs=0.25)
    shifted = -log_p.gather(-1, batch.ids[::2, model.prompt_length - 1 : -1, None]).mean()
    assert float(shifted) > float(entropy) + 1
    lines = (tmp_path / "captions.txt").read_text().splitlines()
    assert len(lines) == 4 and len(json.loads((tmp_path / "codes-00000.json").read_text()))
    with pytest.raises(ExportError, match="other captions"):
        other = tmp_path / "other.txt"
        other.write_text("a red tent\n")
        data.prepare_captions(tmp_path, str(other), 1)


@pytest.mark.parametrize(
    ("command", "changed", "code", "message"),
    [
        (data, {"bundle": "{tmp}/nosuch"}, 4, "{tmp}/nosuch/manifest.json: no such file"),
        (data, {"captions": "{tmp}/nosuch"}, 4, "{tmp}/nosuch: No such file or directory"),
        (data, {"size": "8x8"}, 2, "got size 8x8, expected one of 256x256"),
        (data, {"build": "{tmp}/nosuch"}, 4, "{tmp}/nosuch/lamplighter: No such file or directory"),
        (train, {"bundle": "{tmp}/nosuch"}, 4, "{tmp}/nosuch/manifest.json: no such file"),
        (train, {"data": "{tmp}/nosuch"}, 4, "{tmp}/nosuch: got no features, expected those of"),
        (train, {"held-out": "24"}, 2, "got 24 pictures to hold out, expected fewer than the 24"),
        (train, {"out": "{tmp}/other.pt"}, 7, "{tmp}/other.pt: holds another drafter"),
    ],
)  # fmt: skip
def test_refused(
    command: ModuleType, changed: dict[str, str], code: int, message: str, toy_data: Path,
    demo_bundle: Path, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """One line of error, and no traceback."""
    torch.save({"model": {}}, toy_data / "other.pt")
    (toy_data / "lines").write_text("a red tent\n")
    options = {"bundle": str(demo_bundle), "out": "{tmp}/out"}
    options |= (
        {"captions": "{tmp}/lines"} if command is data else {"data": "{tmp}", "held-out": "8"}
    )
    words = [word for key, value in (options | changed).items() for word in (f"--{key}", value)]
    threads = torch.get_num_threads()
    assert command.main([word.replace("{tmp}", str(toy_data)) for word in words]) == code
    torch.set_num_threads(threads)
    text = capsys.readouterr().err
    assert text.startswith("error: ") and text.count("\n") == 1
    assert message.replace("{tmp}", str(toy_data)) in text
    if "bundle" in changed or "out" in changed:
        assert not (toy_data / "out").exists()
