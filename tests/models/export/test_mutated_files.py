"""Damaged files of every family end in one line and an exit code, and leave nothing: random mutations, by seed."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import chameleon_files
import janus_files
import llamagen_files
import mar_files
import pytest
import simplear_files
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from models.chameleon.transformer import weight_shapes
from models.eagle.config import DrafterConfig
from models.eagle.drafter import Drafter
from models.eagle.eagle3 import Eagle3Config, Eagle3Drafter
from models.export.__main__ import main
from models.heads.flash import Flash, FlashConfig
from models.llamagen.gpt import GPT
from models.llamagen.t5 import T5Encoder

State = dict[Any, Any]
CASES = 14  # of a family
CASES_OF_LLAMAGEN = Path(__file__).parents[2] / "golden/cases/llamagen"
VALUES: list[Any] = [
    None, True, 0, 1, -1, 3, "64", "", "a\nb", "\ud800", [], {}, [1], {"a": 1}, 1.5, 1e-30, 1e30, 10**9, 10**15,
    float("nan"), float("inf"), {"rope_type": "yarn"}, ...,
]  # fmt: skip
TENSORS: list[Callable[[Tensor], Tensor]] = [
    lambda t: t.double(),
    lambda t: t.to(torch.float8_e4m3fn),
    lambda t: t.to("meta"),
    lambda t: t.to_sparse(),
    lambda t: t.to(torch.complex64),
    lambda t: t > 0,
    lambda t: t.to(torch.int64),
    lambda t: t.to(torch.uint16),
    lambda t: t * torch.nan,
    lambda t: t.flatten(),
    lambda t: t[:0],
    lambda t: t[:-1].clone(),
    lambda t: torch.tensor(1.0),
    lambda t: torch.zeros([1] * t.dim()).expand([10**9, *t.shape[1:]]),
]
NAMES: list[Any] = [
    3,
    None,
    (1, 2),
    "extra",
    "a\nb",
    "layers.\u00b2.x",
    "model",
    "x" * 5000,
    "\u202e",
]


def changed_settings(value: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    """One value of an object, or of an object in it, replaced or taken away."""
    part = rng.choice([value, *(v for v in value.values() if isinstance(v, dict) and v)])
    key, new = rng.choice(list(part)), rng.choice(VALUES)
    if new is ...:
        del part[key]
    else:
        part[key] = new
    return value


def changed_state(state: State, rng: random.Random) -> State:
    """One tensor replaced, renamed, or taken away."""
    name = rng.choice(list(state))
    kind = rng.randrange(6)
    if kind < 3:
        tensor = state[name].float()
        return {**state, name: rng.choice(TENSORS)(tensor if tensor.dim() else tensor[None])}
    rest = {key: tensor for key, tensor in state.items() if key != name}
    if kind == 3:
        return rest
    if kind == 4:
        return {**rest, rng.choice(NAMES): state[name]}
    return {**rest, name: rng.choice([3, None, "x", [1], {"a": 1}])}


def change(path: Path, rng: random.Random) -> None:
    """Rewrites a file with one mutation."""
    if rng.random() < 0.15:
        data = path.read_bytes()
        path.write_bytes(data[: rng.randrange(len(data))])
    elif path.suffix == ".json":
        content = changed_settings(json.loads(path.read_text()), rng)
        path.write_text(json.dumps(content))
    elif path.suffix == ".safetensors":
        state = changed_state(dict(load_file(path)), rng)
        path.unlink()
        torch.save(state, path.with_name("pytorch_model.bin"))
    else:
        content = torch.load(path, weights_only=False)
        inner = next(key for key in ("model_ema", "model") if key in content)
        content[inner] = changed_state(dict(content[inner]), rng)
        torch.save(content, path)


Case = tuple[list[str], list[str]]  # words of the command line, files to damage


def llamagen(folder: Path) -> Case:
    gpt = GPT(llamagen_files.GPT_SHAPE).state_dict()
    files = llamagen_files.Files(folder, {"gpt": gpt, "vq": {}})
    words = ["llamagen", "--gpt", str(files.gpt), "--config", str(files.config)]
    return words, ["gpt.pt", "config.json"]


def t5(folder: Path) -> Case:
    files = llamagen_files.Files(folder, {"gpt": {}, "vq": {}})
    files.save_t5(None, **T5Encoder(llamagen_files.T5_SHAPE).state_dict())
    return ["llamagen", "--t5", str(files.t5)], ["t5/model.safetensors", "t5/config.json"]


def converted(folder: Path) -> Case:
    """LANTERN's layout of LlamaGen."""
    shutil.copytree(CASES_OF_LLAMAGEN / "llamagen_end_to_end_t2i/target_hf", folder / "model")
    words = ["llamagen", "--gpt", str(folder / "model")]
    return words, ["model/model.safetensors", "model/config.json"]


def simplear(folder: Path) -> Case:
    state = simplear_files.random_state(simplear_files.SHAPE)
    files = simplear_files.Files(folder, state, "safetensors")
    words = ["simplear", "--model", str(files.model), "--config", str(files.config)]
    return words, [
        "model/model.safetensors",
        "model/config.json",
        "model/tokenizer.json",
        "sizes.json",
    ]


def janus(folder: Path) -> Case:
    state = janus_files.random_state(janus_files.SHAPE)
    files = janus_files.Files(folder, state, "safetensors")
    words = ["janus", "--model", str(files.model), "--config", str(files.config)]
    return words, ["model/model.safetensors", "model/config.json"]


def anole(folder: Path) -> Case:
    files = chameleon_files.Files(folder)
    shapes = weight_shapes(chameleon_files.SHAPE)
    state = {name: torch.rand(shape) for name, shape in shapes.items()}
    chameleon_files.save_model(files.model, chameleon_files.SHAPE, state, "heads")
    words = ["anole", "--model", str(files.model), "--config", str(files.config)]
    return words, ["model/model.safetensors", "model/config.json", "config.json"]


def mar(folder: Path) -> Case:
    files = mar_files.Files(folder)
    words = ["mar", "--model", str(files.model), "--vae", str(files.vae), "--grid", "3x4"]
    return words, ["checkpoint-last.pth", "kl16.ckpt"]


def drafters(folder: Path, kind: str) -> Case:
    words, _ = llamagen(folder)
    assert main([*words, "--out", str(folder / "bundle")]) == 0
    layer = DrafterConfig(32, 4, 24, 40, 22, grid=4, prompt_length=6)
    config: Any = FlashConfig(layer, 2, 2, 3) if kind == "flash" else layer
    module = Flash(config) if kind == "flash" else Drafter(config)
    (folder / "d").mkdir()
    save_file(module.state_dict(), folder / "d/model.safetensors")
    (folder / "d/config.json").write_text(json.dumps(asdict(config)))
    words = [kind, "--bundle", str(folder / "bundle"), "--name", "x", "--overwrite"]
    return [*words, "--drafter", str(folder / "d")], ["d/model.safetensors", "d/config.json"]


def eagle3(folder: Path) -> Case:
    words, files = drafters(folder, "drafter")
    layer = DrafterConfig(16, 2, 24, 40, 40, rotary="line")
    module = Eagle3Drafter(Eagle3Config(layer, 2 * 32, 37, (0, 1)))
    save_file(module.state_dict(), folder / "d/model.safetensors")
    settings = {"hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 24}
    settings |= {"rms_norm_eps": 1e-5, "rope_theta": 1e4}
    (folder / "d/config.json").write_text(json.dumps(settings))
    return ["eagle-3", *words[1:], "--layers", "0", "1"], files


def eagle(folder: Path) -> Case:
    return drafters(folder, "drafter")


def flash(folder: Path) -> Case:
    return drafters(folder, "flash")


@pytest.fixture(
    params=[llamagen, converted, t5, simplear, janus, anole, mar, eagle, eagle3, flash],
    scope="module",
)
def case(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Path, Case]]:
    folder = tmp_path_factory.mktemp(request.param.__name__)
    torch.manual_seed(1)
    yield folder, request.param(folder)


@pytest.mark.parametrize("seed", range(CASES))
def test_mutations(case: tuple[Path, Case], seed: int, capsys: pytest.CaptureFixture[str]) -> None:
    folder, (words, files) = case
    rng = random.Random(seed)
    path = folder / rng.choice(files)
    before = path.read_bytes()
    names = {each.name for each in folder.iterdir()}
    out = [] if "--bundle" in words else ["--out", str(folder / "out"), "--overwrite"]
    try:
        change(path, rng)
        code = main([*words, *out])
    finally:
        path.write_bytes(before)
        path.with_name("pytorch_model.bin").unlink(missing_ok=True)
    lines = [line for line in capsys.readouterr().err.splitlines() if line[:6] != "note: "]
    if code == 0:
        assert not lines
        return
    assert code in (2, 4) and len(lines) == 1 and lines[0].startswith("error: "), lines
    assert {each.name for each in folder.iterdir()} <= names | {"out"}
