"""Scores of generated folders: arithmetic against the official packages' numbers, folders, tables, errors."""

from __future__ import annotations

import csv
import json
import sys
import types
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from models.demo.render.captions import caption
from models.demo.render.world import render
from models.demo.scores import UNSAID, named_values
from models.demo.training.classifier import CLASSIFIED, COLUMNS, held_out_scenes
from models.evaluate import arithmetic, clip, command, errors, images, report
from models.evaluate.folders import Folder, FoundImage, method_name, read_folder
from models.frechet import frechet, statistics


@pytest.fixture
def features() -> tuple[np.ndarray, np.ndarray]:
    """Features whose scores are recorded below."""
    rng = np.random.default_rng(7)
    mix = rng.standard_normal((12, 12))
    real = (rng.standard_normal((60, 12)) @ mix).astype(np.float32)
    generated = (0.8 * rng.standard_normal((50, 12)) @ mix + 0.3).astype(np.float32)
    return real, generated


# clean-fid 0.1.35 frechet_distance and pytorch-fid 0.3.0 calculate_frechet_distance give the same.
@pytest.mark.parametrize(("count", "official"), [(50, 13.078379412830316), (8, 46.84079189376047)])
def test_frechet_distance_is_the_packages(
    features: tuple[np.ndarray, np.ndarray], count: int, official: float
) -> None:
    real, generated = (statistics(part) for part in (features[0], features[1][:count]))
    assert frechet(real, generated) == pytest.approx(official, rel=1e-7)
    assert frechet(generated, real) == pytest.approx(official, rel=1e-6)


def test_frechet_distance_wants_two_images_and_equal_features() -> None:
    with pytest.raises(ValueError, match="got 1 images, expected 2 or more"):
        statistics(np.zeros((1, 3)))
    two, three = (statistics(np.eye(4, width)) for width in (2, 3))
    with pytest.raises(ValueError, match="got 3 features in the reference, expected 2"):
        frechet(two, three)


def test_precision_and_recall_are_prdcs(features: tuple[np.ndarray, np.ndarray]) -> None:
    pytest.importorskip("prdc", reason="prdc is not installed")
    both = arithmetic.precision_recall(*features, 3)
    assert both == pytest.approx({"precision": 0.94, "recall": 43 / 60})


def test_precision_and_recall_ask_the_package(
    features: tuple[np.ndarray, np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []

    def compute(real: np.ndarray, generated: np.ndarray, nearest_k: int) -> dict[str, float]:
        seen.append((len(real), len(generated), nearest_k))
        return {"precision": 0.5, "recall": 0.25, "density": 1, "coverage": 1}

    monkeypatch.setitem(sys.modules, "prdc", types.SimpleNamespace(compute_prdc=compute))
    assert arithmetic.precision_recall(*features, 3) == {"precision": 0.5, "recall": 0.25}
    assert seen == [(60, 50, 3)]
    with pytest.raises(errors.EvaluationError, match="got 4 images, expected 5 or more"):
        arithmetic.precision_recall(features[0], features[1][:4], 3)


def test_clip_score_is_the_mean_cosine() -> None:
    embeddings = np.array([[3.0, 4.0], [0.0, 2.0]])
    texts = np.array([[5.0, 0.0], [0.0, -7.0]])
    assert arithmetic.clip_score(embeddings, texts) == pytest.approx((0.6 - 1) / 2)


def test_clip_weights_are_read_from_archives_too(tmp_path: Path) -> None:
    import torch

    module = torch.nn.Linear(2, 1)
    for name in ("input_resolution", "context_length", "vocab_size"):
        module.register_buffer(name, torch.tensor(1))
    torch.jit.script(module).save(str(tmp_path / "scripted.pt"))
    torch.save({"state_dict": torch.nn.Linear(2, 1).state_dict()}, tmp_path / "plain.pt")
    for file in ("scripted.pt", "plain.pt"):
        assert set(clip.read_state(tmp_path / file)) == {"weight", "bias"}


def test_middle_squares(tmp_path: Path) -> None:
    wide = np.zeros((4, 10, 3), np.uint8)
    wide[:, 3:7] = 255
    Image.fromarray(wide).save(tmp_path / "wide.png")
    assert np.asarray(images.load(tmp_path / "wide.png", 8)).min() == 255
    assert images.load(tmp_path / "wide.png", None).size == (10, 4)
    (tmp_path / "wide.png").write_text("no image")
    with pytest.raises(errors.EvaluationError, match="wide.png: cannot be read as an image"):
        images.load(tmp_path / "wide.png", None)


def test_captions_name_what_their_scenes_hold() -> None:
    rng = np.random.default_rng(2024)
    said = np.zeros(len(CLASSIFIED))
    for _, scene in held_out_scenes(0, 400):
        text = caption(scene, rng)
        named = np.array(named_values(text))
        assert ((named == scene.indices()[COLUMNS]) | (named == UNSAID)).all(), text
        said += named != UNSAID
    assert said[:4].min() > 0.9 * 400 and said[4:].min() > 0.15 * 400
    assert named_values("a dog in the bus") == [UNSAID] * len(CLASSIFIED)
    values = [0, 7, 2, *[UNSAID] * (len(CLASSIFIED) - 3)]
    assert named_values("A White light house under a red sky") == values


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ({"method": "ar"}, "ar"),
        ({"method": "eagle", "rule": "exact", "tree": "chain-4", "children": "sampled"}, "eagle:tree=chain-4"),
        ({"method": "eagle", "rule": "block", "tree": "bundle"}, "eagle:rule=block"),
        (
            {"method": "lantern++", "rule": "lantern++", "tree": "lantern-58", "relax_k": 10, "lambda": [3.0, 2.5], "residual": "optimal"},
            "lantern++:k=10:lambda=3/2.5:tree=lantern-58:residual=optimal",
        ),
        ({"method": "lantern", "rule": "lantern", "relax_k": 1000, "delta": 0.1, "children": "top"}, "lantern:k=1000:delta=0.1:children=top"),
        ({"method": "eagle-2", "rule": "exact", "tree": "dynamic", "children": "top", "dynamic_depth": 4}, "eagle-2:depth=4"),
    ],
)  # fmt: skip
def test_names_are_those_of_bench(settings: dict[str, object], name: str) -> None:
    assert method_name(settings) == name


def generated_folder(path: Path, method: str, ms: float, passes: int, count: int = 3) -> Path:
    """As `lamplighter batch` leaves it, with images of the demo's world."""
    (path / "images").mkdir(parents=True)
    lines = []
    for index, (seed, scene) in enumerate(held_out_scenes(0, count)):
        text = caption(scene, np.random.default_rng(index))
        Image.fromarray(render(scene, seed)).save(path / "images" / f"{index}.png")
        lines.append({
            "index": index, "repeat": 0, "caption": text, "configuration": 0, "status": "ok",
            "file": f"images/{index}.png", "tokens": 256, "target_passes": passes,
            "ms": {"text": 9, "prefill": 1.0, "decode": 2 * ms - 1, "image": 9}, "batch": 2,
        })  # fmt: skip
    (path / "manifest.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    settings = {"method": method, "images": count}
    (path / "run.json").write_text(json.dumps({"schema": 1, "configurations": [settings]}))
    return path


def test_a_table_of_two_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ar = generated_folder(tmp_path / "ar", "ar", 100, 256)
    eagle = generated_folder(tmp_path / "eagle", "eagle", 40, 64)
    names = ("json", "csv", "markdown")
    files = {name: tmp_path / f"out.{name}" for name in names}
    flags = [part for name in names for part in (f"--export-{name}", str(files[name]))]
    scores = tmp_path / "scores.json"
    code = command.main(
        [str(ar), f"ours={eagle}", "--metrics", "demo", *flags, "--scores", str(scores)]
    )
    assert code == 0
    out = capsys.readouterr().out.splitlines()
    assert out[0].split()[:5] == ["method", "images", "S", "ms", "ratio"]
    assert out[2].split()[:5] == ["ours", "3", "4.00", "40.0", "2.50"]
    rows = json.loads(files["json"].read_text())["rows"]
    assert [row["method"] for row in rows] == ["ar", "ours"]
    assert rows[0]["demo_subject"] == 1 and rows[0]["demo_frechet"] > 0
    assert json.loads(scores.read_text())["ours"]["demo_time"] == 1
    with files["csv"].open() as stream:
        assert [row["ratio"] for row in csv.DictReader(stream)] == ["1.0", "2.5"]
    assert files["markdown"].read_text().splitlines()[3].startswith("| ours | 3 | 4.00 | 40.0 |")


def test_one_image_has_no_frechet_distance(tmp_path: Path) -> None:
    folder, file = generated_folder(tmp_path / "ar", "ar", 100, 256, 1), tmp_path / "out.json"
    assert command.main([str(folder), "--metrics", "demo", "--export-json", str(file)]) == 0
    (row,) = json.loads(file.read_text())["rows"]
    assert row["demo_subject"] == 1 and "demo_frechet" not in row


def test_images_that_are_not_there_are_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = generated_folder(tmp_path / "a", "ar", 100, 256, 4)
    (path / "images" / "0.png").unlink()
    lines = (path / "manifest.jsonl").read_text().splitlines()
    failed = json.loads(lines[1]) | {"status": "failed", "error": "no"}
    # An image that failed at first and was generated later is there; a line that was cut off is none.
    text = "\n".join([lines[0], json.dumps(failed | {"index": 2}), json.dumps(failed), lines[2]])
    (path / "manifest.jsonl").write_text(text + "\n" + lines[3][:50])
    folder = read_folder(str(path))
    assert (len(folder.images), folder.failed, folder.missing) == (1, 1, 2)
    assert command.main([str(path)]) == 0
    output = capsys.readouterr()
    assert "1 failed and 2 missing, 1 are measured" in output.err
    assert output.out.split("\n")[0].split()[:4] == ["method", "images", "failed", "missing"]


@pytest.mark.parametrize(
    ("flags", "code", "line"),
    [
        (["{a}", "{a}"], 2, "got ar twice (hint: NAME=FOLDER)"),
        (["{tmp}/none"], 3, "no such folder, expected one of `lamplighter batch`"),
        (["{tmp}"], 3, "run.json: cannot be read"),
        (["{a}", "--metrics", "fid"], 3, "--inception-weights: missing, expected inception-2015-12-05.pt"),
        (["{a}", "--metrics", "fid", "--inception-weights", "{a}/run.json"], 3, "expected inception-2015-12-05.pt: clean-fid looks for that name"),
        (["{a}", "--metrics", "pr", "--inception-weights", "{w}"], 3, "--reference: got nothing, expected a folder"),
        (["{a}", "--metrics", "clip"], 3, "--clip-weights: missing, expected OpenAI's ViT-B-32.pt; nothing is downloaded"),
        (["{a}", "--metrics", "clip", "--clip-weights", "{tmp}/none"], 3, "--clip-weights: {tmp}/none: no such file"),
        (["{a}", "--metrics", "hpsv2"], 3, "--hpsv2-weights: missing, expected HPS_v2.1_compressed.pt"),
        (["{a}", "--scores", "{tmp}/none/s.json"], 7, "--scores: {tmp}/none: no such folder"),
    ],
)  # fmt: skip
def test_missing_input_is_reported_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
    flags: list[str], code: int, line: str,
) -> None:  # fmt: skip
    for module in ("cleanfid.inception_torchscript", "open_clip", "hpsv2.src.open_clip"):
        monkeypatch.setitem(sys.modules, module, types.ModuleType(module))
    weights = tmp_path / "inception-2015-12-05.pt"
    weights.touch()
    paths = {"a": generated_folder(tmp_path / "a", "ar", 1, 1, 1), "tmp": tmp_path, "w": weights}
    assert command.main([flag.format(**paths) for flag in flags]) == code
    message = capsys.readouterr().err.splitlines()[-1]
    assert message.startswith("error: ") and line.format(**paths) in message


@pytest.mark.parametrize(
    ("metric", "pip_name"),
    [("fid", "clean-fid"), ("clip", "open-clip-torch"), ("hpsv2", "open-clip-torch")],
)
def test_a_missing_package_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
    metric: str, pip_name: str,
) -> None:  # fmt: skip
    for module in ("cleanfid", "cleanfid.inception_torchscript", "open_clip"):
        monkeypatch.setitem(sys.modules, module, None)
    path = generated_folder(tmp_path / "a", "ar", 1, 1, 1)
    assert command.main([str(path), "--metrics", metric]) == 3
    assert f"{pip_name} is not installed (pip install {pip_name})" in capsys.readouterr().err


def test_unknown_metrics_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        command.main(["a", "--metrics", "fid,is"])
    assert "got is, expected some of fid, clip, hpsv2, pr, demo" in capsys.readouterr().err


def test_the_ratio_is_to_the_ar_before_it() -> None:
    def folder(method: str, ms: float) -> Folder:
        return Folder(method, Path(), method, [FoundImage(Path(), "")], milliseconds=ms)

    generated = [folder("eagle", 50), folder("ar", 100), folder("eagle", 40), folder("ar", 80), folder("eagle", 40)]  # fmt: skip
    assert [row["ratio"] for row in report.rows(generated, [{}] * 5)] == [2, 1, 2.5, 1, 2]
