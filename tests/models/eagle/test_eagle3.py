"""EAGLE-3 drafters in bundles: published folders, files of training, refusals; inner features of targets."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import torch
from llamagen_files import GPT_SHAPE
from torch import Tensor

from models.archive import archived_tensor
from models.eagle import data
from models.eagle.config import DrafterConfig
from models.eagle.eagle3 import Eagle3Config, Eagle3Drafter
from models.eagle.features import load_target
from models.export.__main__ import main

HIDDEN, CODES, LAYERS = GPT_SHAPE.dim, GPT_SHAPE.vocab_size, GPT_SHAPE.n_layer
WIDTH, KNOWN = 16, CODES - 3  # of the drafter, which is not the target's; of its vocabulary
READ = (0, LAYERS - 1)


def random_drafter(width: int = WIDTH) -> Eagle3Drafter:
    torch.manual_seed(3)
    layer = DrafterConfig(width, 2, 24, CODES, 40, norm_eps=1e-5, rotary="line")
    drafter = Eagle3Drafter(Eagle3Config(layer, len(READ) * HIDDEN, KNOWN, READ))
    drafter.d2t += 3  # knows all codes but the first three
    return drafter


Change = Callable[[dict[str, Tensor], dict[str, Any]], object]


def published(folder: Path, change: Change, width: int = WIDTH) -> Path:
    settings = {
        "hidden_size": width, "num_attention_heads": 2, "intermediate_size": 24,
        "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "draft_vocab_size": KNOWN,
    }  # fmt: skip
    state = random_drafter(width).state_dict()
    change(state, settings)
    folder.mkdir()
    torch.save(state, folder / "pytorch_model.bin")
    (folder / "config.json").write_text(json.dumps(settings))
    return folder


def attach(bundle: Path, drafter: Path, *more: str) -> int:
    words = ["--bundle", str(bundle), "--name", "e", "--drafter", str(drafter), *more]
    return main(["eagle-3", *words])


def entry(bundle: Path) -> dict[str, Any]:
    manifest = json.loads((bundle / "manifest.json").read_text())
    return dict(manifest["drafters"]["e"])


LAYER_FLAGS = ("--layers", *map(str, READ))


def test_published_folders_and_files_of_training(bundle: Path, tmp_path: Path) -> None:
    folder = published(tmp_path / "eagle3", lambda state, settings: None)
    assert attach(bundle, folder, *LAYER_FLAGS) == 0
    assert entry(bundle)["kind"] == "eagle-3"
    assert entry(bundle)["feature_layers"] == list(READ)
    drafter, file = random_drafter(), tmp_path / "eagle3.pt"
    torch.save({"config": asdict(drafter.config), "model": drafter.state_dict()}, file)
    first = (bundle / "drafter-e.pt").read_bytes()
    assert attach(bundle, file, "--overwrite") == 0
    assert (bundle / "drafter-e.pt").read_bytes() == first


def test_what_a_published_file_may_leave_out(bundle: Path, tmp_path: Path) -> None:
    """The target's embedding, and the map of a draft vocabulary of all ids."""

    def change(state: dict[str, Tensor], settings: dict[str, Any]) -> None:
        state["lm_head.weight"] = torch.randn(CODES, HIDDEN)
        del settings["draft_vocab_size"]
        for name in ("embed_tokens.weight", "d2t", "t2d"):
            del state[name]

    assert attach(bundle, published(tmp_path / "e", change, HIDDEN), *LAYER_FLAGS) == 0
    embedding = archived_tensor(bundle / "drafter-e.pt", "embedding")
    assert embedding is not None
    assert torch.equal(embedding, archived_tensor(bundle / "target.pt", "embedding"))


def test_unknown_codes_are_never_drafted(bundle: Path, tmp_path: Path) -> None:
    folder = published(tmp_path / "eagle3", lambda state, settings: None)
    assert attach(bundle, folder, *LAYER_FLAGS) == 0
    module = torch.jit.load(bundle / "drafter-e.pt")
    module.prepare(torch.empty(0))
    logits = module.logits(torch.randn(1, 2, WIDTH))
    assert logits.shape == (1, 2, CODES)
    assert float(logits.softmax(-1)[..., :3].max()) == 0 and bool((logits[..., 3:] > -1e3).all())


@pytest.mark.parametrize(
    ("count", "layers", "message"),
    [
        (1, "0 1", "got 0 1, the target has layers 0 alone"),
        (2, "0 2", "got 0 2, the target has layers 0 to 1, each once, in ascending order"),
        (2, "1 0", "got 1 0, the target"),
        (2, "1 1", "got 1 1, the target"),
        (2, "-1", "got -1, the target"),
        (0, "0", "the target has no forward_features"),
    ],
)
def test_data_of_layers_that_the_target_lacks(
    bundle: Path,
    tmp_path: Path,
    count: int,
    layers: str,
    message: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file, captions, out = bundle / "manifest.json", tmp_path / "captions.txt", tmp_path / "data"
    manifest = json.loads(file.read_text())
    if count:
        manifest["cache"]["layers"] = count
    else:
        manifest["modules"]["target"]["methods"] = ["forward_layers"]
    file.write_text(json.dumps(manifest))
    captions.write_text("a boat\n")
    words = ["--bundle", bundle, "--captions", captions, "--out", out, "--layers", *layers.split()]
    assert data.main([str(word) for word in words]) == (2 if count else 4)
    assert f"error: --layers: {message}" in capsys.readouterr().err and not out.exists()


def test_targets_give_what_inner_layers_get(bundle: Path) -> None:
    target = load_target(bundle).target
    x = torch.randn(1, 5, HIDDEN)
    positions, none = torch.arange(5)[None] + 3, torch.empty(0, dtype=torch.int64)
    shape = (LAYERS, 2, 1, GPT_SHAPE.n_head, 5, HIDDEN // GPT_SHAPE.n_head)
    inputs = (x, positions, none, torch.zeros(1, dtype=torch.int64))
    hidden, inner = target.forward_features(*inputs, torch.zeros(shape), torch.tensor(READ))
    expected, _ = target.forward(*inputs, torch.zeros(shape))
    assert torch.equal(hidden, expected)
    assert torch.equal(inner[..., :HIDDEN], x) and not torch.equal(inner[..., HIDDEN:], x)
    layers = torch.tensor([0, LAYERS - 1])
    residual, _ = target.forward_layers(x, *inputs[1:], torch.zeros(shape), layers)
    assert torch.equal(inner[..., HIDDEN:], residual)


@pytest.mark.parametrize(
    ("change", "flags", "message"),
    [
        (lambda state, _: state.pop("norm.weight"), LAYER_FLAGS, "missing keys: norm.weight"),
        (lambda _, settings: settings.pop("rms_norm_eps"), LAYER_FLAGS, "rms_norm_eps is missing"),
        (
            lambda _, settings: settings.update(hidden_size=2 * WIDTH),
            LAYER_FLAGS,
            f"expected {WIDTH}",
        ),
        (lambda _, settings: settings.update(draft_vocab_size=3), LAYER_FLAGS, f"expected {KNOWN}"),
        (lambda state, _: state.pop("d2t"), LAYER_FLAGS, "missing key d2t"),
        (lambda state, _: state["d2t"].__setitem__(0, 999), LAYER_FLAGS, "expected different ids"),
        (lambda state, _: None, ("--layers", "1", "1"), "expected ascending ones"),
        (lambda state, _: None, ("--layers", "1"), "fc.weight reads"),
        (lambda state, _: None, (), "give --layers"),
    ],
)
def test_what_does_not_fit_is_refused(
    bundle: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    change: Change,
    flags: tuple[str, ...],
    message: str,
) -> None:
    before = (bundle / "manifest.json").read_bytes()
    assert attach(bundle, published(tmp_path / "eagle3", change), *flags) != 0
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1, error
    assert (bundle / "manifest.json").read_bytes() == before
