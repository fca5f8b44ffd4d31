"""The Python package has the images, statistics and errors of the command line."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import io
import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from tests.conftest import Runner
from tests.e2e.families import chameleon

PROMPTS = ("a red boat on the sea at dawn", "a blue house in the snow")


def example(root: Path, name: str) -> Any:
    path = root / "tools" / "python" / "examples" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_what_the_model_does_not_know_is_a_warning(engine: Any) -> None:
    with pytest.warns(UserWarning, match="does not know: zebra"):
        known, unknown = engine.generate(["a red house at dusk", "a zebra"], method="sjd")
    assert known.warnings == []
    assert len(unknown.warnings) == 1 and "does not know: zebra" in unknown.warnings[0]


def test_images_and_statistics_equal_the_program(
    engine: Any, lamplighter: Path, run_program: Runner, demo_bundle: Path, tmp_path: Path
) -> None:
    words = [word for prompt in PROMPTS for word in ("-p", prompt)]
    ran = run_program(
        lamplighter, "generate", "-m", demo_bundle, *words, "--method", "sjd", "--seed", 7, "--top-k", 50,
        "--device", "cpu", "--threads", 1, "--json", "-q", "-o", tmp_path / "%04d.png",
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    reports = [json.loads(line) for line in ran.stdout.splitlines()]
    results = engine.generate(PROMPTS, method="sjd", seed=7, top_k=50)
    assert [r.settings["seed"] for r in results] == [7, 8]
    assert len(reports) == len(results)
    for report, result in zip(reports, results):
        assert np.array_equal(np.asarray(result.image), np.asarray(Image.open(report["output"])))
        s = result.statistics
        said = {"cycles": len(s.acceptance_lengths)} | {
            name: getattr(s, name)
            for name in ("tokens", "target_passes", "batch", "step_compression", "acceptance_length",
                         "drafted_by_depth", "accepted_by_depth")
        }  # fmt: skip
        assert said == {name: report[name] for name in said}
        assert sum(s.acceptance_lengths) == s.tokens - 1
        assert set(s.seconds) == set(report["ms"]) and s.seconds["decode"] > 0
        assert {name: report[name] for name in result.settings} == result.settings


def test_rows_come_in_order_and_decode_to_the_image(engine: Any) -> None:
    reported: dict[int, list[int]] = {0: [], 1: []}
    last: dict[int, np.ndarray] = {}

    def on_row(image: int, row: int, codes: np.ndarray) -> None:
        assert len(codes) == row + 1
        reported[image].append(row)
        last[image] = codes

    results = engine.generate(PROMPTS, method="sjd", on_row=on_row, progress=True)
    for index, result in enumerate(results):
        assert reported[index] == list(range(len(result.codes)))
        assert np.array_equal(last[index], result.codes) and result.codes.dtype == np.int32
        assert np.array_equal(np.asarray(engine.decode(result.codes)), np.asarray(result.image))


def test_images_are_encoded_as_the_program_does(
    package: Any, bare_bundle: Path, lamplighter: Path, run_program: Runner, tmp_path: Path
) -> None:
    bundle = chameleon(tmp_path)
    reader = package.TextToImage(bundle, device="cpu", threads=1)
    random = np.random.default_rng(0)
    image = Image.fromarray(random.integers(0, 256, (30, 70, 4), dtype=np.uint8))
    image.save(tmp_path / "a.png")
    for fit in ("crop", "pad", "stretch"):
        words = ("a.png", "-m", bundle, "--fit", fit, "-o", f"{fit}.json")
        ran = run_program(lamplighter, "encode", *words, cwd=tmp_path)
        assert ran.returncode == 0, ran.stderr
        (saved,) = json.loads((tmp_path / f"{fit}.json").read_text())["images"]
        codes = reader.encode(image, fit=fit)
        assert codes.shape == (3, 4) and codes.dtype == np.int32
        assert codes.ravel().tolist() == saved["codes"]
    assert reader.decode(codes).size == (64, 48)
    with pytest.raises(package.Error, match="fit: got 'squeeze'"):
        reader.encode(image, fit="squeeze")
    with pytest.raises(package.Error, match="width: got 0"):
        reader.encode(image, width=0)
    with pytest.raises(package.Error, match="image: got 0x5 pixels"):
        reader.encode(Image.new("RGB", (0, 5)))
    without = package.TextToImage(bare_bundle, device="cpu", threads=1)
    with pytest.raises(package.Error, match="lacks image_encoder"):
        without.encode(image)


def test_tokens_per_pass_stand_at_their_positions(engine: Any) -> None:
    for method in ("ar", "sjd", "zipar"):
        (result,) = engine.generate(PROMPTS[0], method=method)
        tokens, lengths = result.tokens_per_pass, result.statistics.acceptance_lengths
        assert tokens.shape == result.codes.shape and tokens.min() == 1
        # The prefill commits one token; each pass as many as stand in the grid with its number.
        for length in set(lengths) | {1}:
            passes = lengths.count(length) + (length == 1)
            assert (tokens == length).sum() == length * passes
    assert (tokens.ravel() != 1).any()


def test_results_and_engines_show_themselves(engine: Any) -> None:
    (result,) = engine.generate(PROMPTS[0], method="sjd", seed=7)
    assert "sjd" in repr(result) and "\n" not in repr(result) and len(repr(result)) < 160
    assert repr(engine) == "<TextToImage lamplighter-demo on cpu in bf16>"
    assert Image.open(io.BytesIO(result._repr_png_())).size == result.image.size


def test_the_signature_lists_all_options(package: Any) -> None:
    known = inspect.signature(package.TextToImage.generate).parameters
    assert {"lambda_", "tree", "relax_k", "cfg_scale"} <= known.keys() and "options" not in known
    assert {name.rstrip("_") for name in known} >= package.option_meanings().keys()
    assert known["relax_k"].annotation == "int | None"


def test_a_seed_for_each(engine: Any) -> None:
    same = engine.generate([PROMPTS[0]] * 2, method="sjd", seed=[3, 3])
    assert np.array_equal(same[0].codes, same[1].codes)


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        ({"method": "magic"}, 2, "magic"),
        ({"top_k": "many"}, 2, "top_k"),
        ({"colour": 1}, 2, "colour"),
        ({"lamda_": 2}, 2, "did you mean lambda"),
        ({"negative_prompt": "fog"}, 2, "has no negative prompts"),
        ({"cfg_scale": float("nan")}, 2, "options"),
        ({"width": 33, "height": 33}, 2, "33"),
        ({"seed": [1, 2]}, 2, "2 seeds"),
        ({"prompts": " "}, 3, "prompt"),
    ],
)
def test_errors(package: Any, engine: Any, options: dict[str, Any], code: int, words: str) -> None:
    with pytest.raises(package.Error, match=words) as caught:
        engine.generate(**({"prompts": PROMPTS[0]} | options))
    assert caught.value.exit_code == code and "\n" not in str(caught.value)


def test_a_missing_bundle(package: Any, tmp_path: Path) -> None:
    with pytest.raises(package.Error, match="none") as caught:
        package.TextToImage(tmp_path / "none")
    assert caught.value.exit_code == 4


def test_exceptions_of_on_row_are_raised(package: Any, engine: Any) -> None:
    def fail(*_: object) -> None:
        raise LookupError("of the caller")

    with pytest.raises(LookupError, match="of the caller"):
        engine.generate(PROMPTS[0], method="sjd", on_row=fail)
    with pytest.raises(package.Error, match="on_row"):
        engine.generate(PROMPTS[0], on_row=lambda *_: engine.generate(PROMPTS[0]))


def test_one_torch_is_loaded(engine: Any) -> None:
    lines = Path("/proc/self/maps").read_text().splitlines()
    loaded = {line.split()[-1] for line in lines if "/libtorch_cpu" in line}
    assert loaded == {str(Path(torch.__file__).resolve().parent / "lib" / "libtorch_cpu.so")}


def test_another_torch_is_refused_in_one_line(
    package: Any, build_dir: Path, run_program: Runner
) -> None:
    program = "import torch; torch.__version__ = '1.0.0'; import lamplighter"
    paths = {**os.environ, "PYTHONPATH": str(build_dir / "python")}
    ran = run_program(sys.executable, "-c", program, env=paths)
    assert ran.returncode == 1
    assert "ImportError: lamplighter was built with Torch" in ran.stderr.splitlines()[-1]


@pytest.mark.parametrize("configured", [False, True])
def test_a_package_that_is_not_built_says_what_to_run(
    root: Path, build_dir: Path, tmp_path: Path, configured: bool, run_program: Runner
) -> None:
    shutil.copytree(root / "tools/python/lamplighter", tmp_path / "lamplighter")
    if configured:
        shutil.copy(build_dir / "python/lamplighter/_built.py", tmp_path / "lamplighter")
    paths = {**os.environ, "PYTHONPATH": str(tmp_path)}
    ran = run_program(sys.executable, "-c", "import lamplighter", env=paths)
    assert ran.returncode == 1
    assert "not built" in ran.stderr.splitlines()[-1] and "setup.sh" in ran.stderr.splitlines()[-1]


def test_comfyui_node(package: Any, engine: Any, root: Path, demo_bundle: Path) -> None:
    node = example(root, "comfyui_node").NODE_CLASS_MAPPINGS["Lamplighter"]
    arguments = {"prompt": PROMPTS[0], "method": "sjd", "seed": 7}
    required = node.INPUT_TYPES()["required"]
    assert required.keys() == {"bundle"} | arguments.keys()
    assert required["method"][0] == [*package.methods(), "auto"]
    (image,) = getattr(node(), node.FUNCTION)(bundle=str(demo_bundle), **arguments)
    kept = dict(node.engines)
    getattr(node(), node.FUNCTION)(bundle=str(demo_bundle), **arguments, guidance=1.0)
    assert node.engines == kept, "the engine is kept"
    want = np.asarray(engine.generate(PROMPTS[0], method="sjd", seed=7)[0].image)
    assert image.shape == (1, *want.shape) and image.dtype == torch.float32
    assert np.array_equal((image[0] * 255).round().numpy().astype(np.uint8), want)


def test_example_of_methods(
    package: Any,
    root: Path,
    build_dir: Path,
    run_program: Runner,
    demo_bundle: Path,
    tmp_path: Path,
) -> None:
    script = root / "tools" / "python" / "examples" / "methods.py"
    paths = {**os.environ, "PYTHONPATH": str(build_dir / "python")}
    ran = run_program(sys.executable, script, demo_bundle, tmp_path / "figure.png", env=paths)
    assert ran.returncode == 0, ran.stderr
    shares = {line.split()[0]: float(line.split()[1]) for line in ran.stdout.splitlines()}
    assert shares["ar"] == 1 and shares["sjd"] > 1.5
    assert Image.open(tmp_path / "figure.png").width == 256 * len(shares)


def test_method_auto_is_logged_and_generates(
    package: Any, demo_bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    """Without a table of measurements, the methods are measured."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    engine = package.TextToImage(demo_bundle, device="cpu", threads=1)
    with caplog.at_level("INFO"):
        (result,) = engine.generate(PROMPTS[0], method="auto", seed=7)
    assert result.settings["method"] in ("ar", "sjd", "scd", "eagle", "flash", "refine")
    assert f"method auto: {result.settings['method']}" in caplog.text
    with pytest.raises(package.Error, match="method auto chooses its own options"):
        engine.generate(PROMPTS[0], method="auto", tree="chain-3")
