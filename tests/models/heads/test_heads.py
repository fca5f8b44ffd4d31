"""Medusa heads and MLP speculators: scripted forms, files of every layout, training, refusals."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from llamagen_files import GPT_SHAPE
from safetensors.torch import save_file
from torch import Tensor
from toy_target import CONFIG, PROMPT, VOCABULARY, WIDTH, toy_images, toy_model

from models import ops
from models.archive import write_archive
from models.eagle.batch import make_batch
from models.export.__main__ import main
from models.heads.flash import Flash, FlashConfig
from models.heads.medusa import Heads, HeadsConfig
from models.heads.medusa_module import HeadsModule
from models.heads.mlp import Speculator, SpeculatorConfig
from models.heads.mlp_module import SpeculatorModule
from models.heads.train import acceptance, evaluate, objective, published_objective

CODES, HIDDEN = GPT_SHAPE.vocab_size, GPT_SHAPE.dim


def random_heads(config: HeadsConfig) -> Heads:
    torch.manual_seed(2)
    heads = Heads(config).requires_grad_(False)
    for weight in heads.parameters():
        torch.nn.init.normal_(weight, std=0.2)
    return heads


def attach(bundle: Path, file: Path, *more: str, kind: str = "medusa") -> int:
    words = ["--bundle", str(bundle), "--name", "m", "--heads", str(file), *more]
    return main([kind, *words])


def random_speculator(config: SpeculatorConfig) -> Speculator:
    torch.manual_seed(4)
    speculator = Speculator(config).requires_grad_(False)
    for weight in speculator.parameters():
        torch.nn.init.normal_(weight, std=0.3)
    return speculator


@pytest.mark.parametrize("blocks", [0, 1, 2])
def test_the_scripted_form_is_the_plain_one(tmp_path: Path, blocks: int) -> None:
    ops.load()
    heads = random_heads(HeadsConfig(24, 30, 3, blocks))
    write_archive(HeadsModule(heads), tmp_path / "heads.pt")
    module = torch.jit.load(tmp_path / "heads.pt")
    module.prepare(torch.empty(0))
    hidden = torch.randn(4, 1, 24)
    expected = torch.cat([heads.logits(hidden, head) for head in range(3)], 1)
    torch.testing.assert_close(module.heads(hidden), expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("inner", [0, 40])
@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("scale_input", [False, True])
def test_the_scripted_speculator_is_the_plain_one(
    tmp_path: Path, inner: int, tied: bool, scale_input: bool
) -> None:
    """Step by step, with the rows of the head that belong to images."""
    ops.load()
    plain = random_speculator(SpeculatorConfig(24, 30, 3, inner, tied, scale_input))
    write_archive(SpeculatorModule(plain, 5, 20), tmp_path / "steps.pt")
    module = torch.jit.load(tmp_path / "steps.pt")
    module.prepare(torch.empty(0))
    state, ids = torch.randn(4, 2, 24), torch.randint(30, (3, 4, 2))
    expected = state
    for number in range(3):
        expected = plain.step(expected, ids[number], number)
        state = module.step(state, ids[number], torch.tensor(number))
        torch.testing.assert_close(state, expected, atol=1e-5, rtol=1e-5)
        logits = plain.head[number](expected)[..., 5:25]
        got = module.logits(state, torch.tensor(number))
        torch.testing.assert_close(got, logits, atol=1e-5, rtol=1e-5)


def test_published_speculators(bundle: Path, tmp_path: Path) -> None:
    """Shared weights stand in a folder once, or for every step; the archive is the same."""
    config = SpeculatorConfig(HIDDEN, CODES, 3, 20, tied=True, scale_input=True)
    state = {f"speculator.{n}": w for n, w in random_speculator(config).state_dict().items()}
    shared = ("emb.1", "emb.2", "proj.2", "head.1", "head.2", "ln.1", "ln.2")
    once = {
        n: w for n, w in state.items() if not n.startswith(tuple(f"speculator.{p}" for p in shared))
    }
    settings = {"n_predict": 3, "inner_dim": 20, "tie_weights": True, "scale_input": True}
    archives = []
    for name, content in (("full", state), ("once", once)):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "config.json").write_text(json.dumps(settings))
        save_file({n: w.clone() for n, w in content.items()}, folder / "model.safetensors")
        assert attach(bundle, folder, "--overwrite", kind="mlp") == 0
        archives.append((bundle / "drafter-m.pt").read_bytes())
    assert archives[0] == archives[1]
    entry = json.loads((bundle / "manifest.json").read_text())["drafters"]["m"]
    assert (entry["kind"], entry["heads"]) == ("mlp", 3)


def test_sizes_that_contradict_the_weights(
    bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An inner width of 0 is that of the target."""
    for inner, changes, message in (
        (20, {"emb_dim": HIDDEN + 1}, f"emb_dim is {HIDDEN + 1}, expected {HIDDEN}"),
        (20, {"inner_dim": 0}, "inner_dim is 0, expected 20"),
        (HIDDEN, {"inner_dim": 0}, ""),
    ):
        state = random_speculator(SpeculatorConfig(HIDDEN, CODES, 3, inner)).state_dict()
        folder = tmp_path / f"{len(list(tmp_path.iterdir()))}"
        folder.mkdir()
        (folder / "config.json").write_text(json.dumps({"n_predict": 3, **changes}))
        save_file(state, folder / "model.safetensors")
        assert attach(bundle, folder, "--overwrite", kind="mlp") == (4 if message else 0)
        said = capsys.readouterr()
        assert message in said.err and said.err.count("\n") == bool(message)
        assert message or "leaves out tie_weights, scale_input, takes false" in said.out


def test_files_of_every_layout_become_the_same_heads(bundle: Path, tmp_path: Path) -> None:
    """Plain, below the name that a whole model's file has, and for all tokens of the vocabulary."""
    heads = random_heads(HeadsConfig(HIDDEN, CODES, 2, 1))
    state = heads.state_dict()
    torch.save(state, tmp_path / "plain.pt")
    torch.save({f"medusa_head.{name}": w for name, w in state.items()}, tmp_path / "whole.pt")
    torch.save({"config": {}, "model": state}, tmp_path / "trained.pt")
    longer = {n: torch.cat([w, w]) if w.shape == (CODES, HIDDEN) else w for n, w in state.items()}
    torch.save(longer, tmp_path / "longer.pt")
    archives = []
    for name in ("plain", "whole", "trained", "longer"):
        assert attach(bundle, tmp_path / f"{name}.pt", "--overwrite") == 0
        archives.append((bundle / "drafter-m.pt").read_bytes())
    assert len(set(archives)) == 1
    entry = json.loads((bundle / "manifest.json").read_text())["drafters"]["m"]
    expected = {"file": "drafter-m.pt", "dtype": "float32", "kind": "medusa", "heads": 2}
    assert entry == expected


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda state: state.pop("1.1.weight"), "1.1.weight"),
        (lambda state: state.update({"extra": torch.zeros(1)}), "got extra, expected 0.0.linear"),
        (lambda state: state.clear(), "no state dict"),
        (lambda state: state.update({"0.1.weight": torch.zeros(CODES, HIDDEN + 1)}), "hidden: got"),
        (lambda state: state.update({"0.1.weight": torch.zeros(3, HIDDEN)}), "vocabulary: got 3"),
    ],
)
def test_what_does_not_fit_is_refused(
    bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], change: object, message: str
) -> None:
    state = random_heads(HeadsConfig(HIDDEN, CODES, 2, 1)).state_dict()
    assert callable(change)
    change(state)
    torch.save(state, tmp_path / "heads.pt")
    before = (bundle / "manifest.json").read_bytes()
    assert attach(bundle, tmp_path / "heads.pt") != 0
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1
    assert (bundle / "manifest.json").read_bytes() == before


KINDS = ("medusa", "mlp", "flash", "flash compressed")


def toy_heads(kind: str) -> Heads | Speculator | Flash:
    torch.manual_seed(0)
    if kind == "medusa":
        return Heads(HeadsConfig(WIDTH, VOCABULARY, 2, 1))
    if kind == "mlp":
        return Speculator(SpeculatorConfig(WIDTH, VOCABULARY, 2))
    flash, model = Flash(FlashConfig(CONFIG, 2, *((2, 3) if kind != "flash" else ()))), toy_model()
    flash.begin(model.embedding, model.head)
    return flash


@pytest.mark.parametrize("kind", KINDS)
def test_training_raises_the_acceptance(kind: str) -> None:
    """The target: every token follows from the last."""
    model = toy_model()
    shard = toy_images(48, 5)
    batch = make_batch(shard["features"].float(), shard["codes"], shard["valid"], PROMPT, 0)
    images = SimpleNamespace(held_out_batches=lambda: [batch])
    heads = toy_heads(kind)
    optimizer = torch.optim.AdamW(heads.parameters(), lr=1e-2)
    first = evaluate(heads, model, images)
    for _ in range(60):
        optimizer.zero_grad()
        objective(heads, model, batch).backward()
        optimizer.step()
    last = evaluate(heads, model, images)
    assert last["rates"][0] > first["rates"][0] + 0.1
    assert last["chains"][2] > first["chains"][2] > 1


@pytest.mark.parametrize("loss", [objective, published_objective])
@pytest.mark.parametrize("kind", KINDS)
def test_rows_in_parts_give_the_same(
    kind: str, loss: Callable[..., Tensor], monkeypatch: pytest.MonkeyPatch
) -> None:
    if loss is published_objective and "flash" not in kind:
        return
    model, shard, heads = toy_model(), toy_images(2, 5), toy_heads(kind)
    batch = make_batch(shard["features"].float(), shard["codes"], shard["valid"], PROMPT, 0)
    found = []
    for numbers in (1 << 25, 400, 100):  # a row has 48 logits and 144 scores
        monkeypatch.setattr("models.eagle.parts.PART_NUMBERS", numbers)
        heads.zero_grad()
        total = loss(heads, model, batch)
        total.backward()
        gradients = [w.grad for w in heads.parameters() if w.grad is not None]
        found.append([total.detach(), *gradients, *acceptance(heads, model, batch)])
    for other in found[1:]:
        torch.testing.assert_close(other, found[0], equal_nan=True)


def test_the_published_recipe_of_flash_lowers_its_loss() -> None:
    model, shard = toy_model(), toy_images(16, 5)
    batch = make_batch(shard["features"].float(), shard["codes"], shard["valid"], PROMPT, 0)
    torch.manual_seed(0)
    flash = Flash(FlashConfig(CONFIG, 2))
    flash.begin(model.embedding, model.head)
    optimizer = torch.optim.AdamW(flash.parameters(), lr=1e-2)
    losses = []
    for _ in range(40):
        optimizer.zero_grad()
        loss = published_objective(flash, model, batch)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.7 * losses[0]
