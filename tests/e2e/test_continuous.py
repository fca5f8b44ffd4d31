"""Bundles of continuous tokens from the command line: images, methods, batches, errors."""

from __future__ import annotations

import json
import math
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy
import pytest
from mar_files import random_model
from PIL import Image

from models.archive import write_archive
from models.mar.diffusion import schedule
from models.mar.target_module import TargetModule
from tests.e2e.continuous_bundle import (
    CHANNELS,
    CLASSES,
    DRAFT_SHAPE,
    SHAPE,
    SIDE,
    STEPS,
)
from tests.e2e.support import Cli, Refused, edit_manifest, replace_file, texts

TOKENS = SIDE * SIDE
EXACT = ("--method", "cspd")
RUNS: list[tuple[object, ...]] = [
    ("--steps", 5),
    ("--steps", TOKENS, "--last-noise", "on"),
    (*EXACT,),
    (*EXACT, "--rule", "paper", "--gamma", 2, "--cap", 20, "--prefill-ratio", 0.2),
    (*EXACT, "--rule", "official", "--steps", 12, "--gamma", 3),
]


def pixels(path: Path) -> numpy.ndarray:
    return numpy.asarray(Image.open(path)).astype(int)


@pytest.fixture(scope="session")
def weightless(mar: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bundle with unreadable archives and wide conditions in the manifest."""
    folder = Path(shutil.copytree(mar, tmp_path_factory.mktemp("weightless") / "bundle"))
    for path in folder.glob("*.pt"):
        replace_file(folder, path.name, b"none")
    edit_manifest(folder, lambda manifest: manifest["target"].update(hidden=1 << 16))
    return folder


@pytest.fixture
def image(ran: Cli, mar: Path, tmp_path: Path) -> Any:
    """Generates class 3; returns the pixels and the JSON line."""

    def run(*arguments: object) -> tuple[numpy.ndarray, dict[str, Any]]:
        given = () if "--class" in arguments else ("--class", 3)
        files = ("-o", "a.png", "--overwrite", "--json")
        result = ran("generate", *given, *files, *arguments, model=mar)
        return pixels(tmp_path / "a.png"), json.loads(result.stdout)

    return run


@pytest.mark.parametrize("run", RUNS, ids=str)
def test_images_can_be_generated_again_from_their_parameters(
    ran: Cli, mar: Path, image: Any, tmp_path: Path, run: tuple[object, ...]
) -> None:
    generated, line = image(*run)
    assert generated.shape == (32, 32, 3) and generated.std() > 5
    assert line["tokens"] == TOKENS and line["dtype"] == "fp32"
    assert line["target_passes"] <= TOKENS
    assert json.loads(texts(tmp_path / "a.png")["lamplighter"])["class"] == 3
    ran("generate", "--params-from", "a.png", "-o", "b.png", model=mar)
    assert (tmp_path / "b.png").read_bytes() == (tmp_path / "a.png").read_bytes()


def test_passes_follow_the_schedule(image: Any) -> None:
    assert image("--steps", 5)[1]["target_passes"] == 5
    assert image()[1]["target_passes"] == TOKENS  # fewer than 64
    assert image("--method", "cspd", "--prefill-ratio", 1)[1]["target_passes"] == TOKENS


def test_a_twin_drafts_what_the_target_generates(image: Any) -> None:
    alone, _ = image("--steps", TOKENS, "--last-noise", "on")
    prefilled, _ = image(*EXACT, "--prefill-ratio", 1)
    assert numpy.array_equal(alone, prefilled)
    for gamma in (1, 3, 50):
        given = (*EXACT, "--drafter", "twin", "--gamma", gamma, "--prefill-ratio", 0)
        drafted, line = image(*given)
        assert abs(drafted - alone).max() <= 1
        assert line["target_passes"] == math.ceil(TOKENS / (min(gamma, TOKENS) + 1))
        assert line["accepted_by_depth"] == line["drafted_by_depth"]
    other, line = image(*EXACT)
    assert abs(other - alone).max() > 1 and line["proposals"] > 0 and line["fallbacks"] == 0


@pytest.mark.parametrize("run", RUNS, ids=str)
def test_images_are_the_same_alone_and_beside_others(
    ran: Cli, mar: Path, tmp_path: Path, run: tuple[object, ...]
) -> None:
    for size in (1, 4):
        given = ("--class", 1, "-b", 6, "--batch-size", size, "-o", f"{size}-%d.png")
        ran("generate", *given, *run, model=mar)
    seen = []
    for number in range(6):
        one = pixels(tmp_path / f"1-{number}.png")
        assert abs(one - pixels(tmp_path / f"4-{number}.png")).max() <= 1
        seen.append(one.tobytes())
    assert len(set(seen)) == 6


def test_classes_seeds_and_guidance_matter(image: Any) -> None:
    one = image()[0]
    for change in (("--class", 4), ("--seed", 7), ("--cfg-scale", 1), ("--temperature", 0.5)):
        assert not numpy.array_equal(image(*change)[0], one), change


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--method", "eagle"), "continuous"),
        (("--method", "sjd"), "continuous"),
        (("--tree", "chain-4"), "--tree"),
        (("--gamma", 3), "--gamma"),
        (("--rule", "exact"), "--rule"),
        (("--steps", TOKENS + 1), f"1 to {TOKENS}"),
        (("--steps", 0), "--steps"),
        ((*EXACT, "--steps", 4), "--steps"),
        ((*EXACT, "--last-noise", "off"), "--last-noise"),
        ((*EXACT, "--rule", "lantern"), "exact, paper, official"),
        ((*EXACT, "--prefill-ratio", 2), "--prefill-ratio: got 2, expected"),
        ((*EXACT, "--gamma", 0), "--gamma: got 0, expected"),
        ((*EXACT, "--cap", -1), "--cap: got -1, expected"),
        ((*EXACT, "--rule", "official", "--cap", 5000), "--cap"),
        ((*EXACT, "--drafter", "none"), "small"),
        ((*EXACT, "--temperature", 0), "--temperature"),
        (("--top-k", 5), "--top-k"),
        (("--top-p", 0.5), "--top-p"),
        (("--dtype", "bf16"), "--dtype"),
        (("--cache-dtype", "int8"), "--cache-dtype"),
        (("--save-codes", "c.json"), "--save-codes"),
        (("--preview", "p.png"), "--preview"),
        (("--class", CLASSES), f"--class: got {CLASSES}, expected 0..{CLASSES - 1}"),
        (("--class", -1), f"--class: got -1, expected 0..{CLASSES - 1}"),
    ],
)
def test_usage(
    refused: Refused, weightless: Path, arguments: tuple[object, ...], words: str
) -> None:
    """Checks settings before it loads weights."""
    given = () if "--class" in arguments else ("--class", 1)
    assert words in refused(2, "generate", *given, "-o", "x.png", *arguments, model=weightless)


@pytest.mark.parametrize("value", [0, 1e-300])
def test_the_temperature_of_a_bundle_is_no_flag(
    refused: Refused, weightless: Path, tmp_path: Path, value: float
) -> None:
    """What the manifest says is not blamed on a flag that nobody gave."""
    folder = Path(shutil.copytree(weightless, tmp_path / "cold"))
    edit_manifest(folder, lambda manifest: manifest["sampling"].update(temperature=value))
    message = refused(4, "generate", "--class", 1, "-o", "x.png", *EXACT, model=folder)
    assert "cold/manifest.json: sampling.temperature: got 0, expected more than 0" in message


def test_a_bundle_of_classes_refuses_captions(refused: Refused, weightless: Path) -> None:
    message = refused(2, "generate", "-p", "a boat", "-o", "x.png", model=weightless)
    assert f"class: got none, expected 0..{CLASSES - 1}: this bundle generates classes" in message


def test_a_caption_beside_a_class(refused: Refused, weightless: Path, tmp_path: Path) -> None:
    words = (
        'prompt: got "a boat" beside class 1, expected one of them: this bundle generates classes'
    )
    both = ("--class", 1, "-p", "a boat", "-o", "x.png")
    assert words in refused(2, "generate", *both, model=weightless)
    (tmp_path / "p.jsonl").write_text('{"prompt": "a boat", "class": 1}\n')
    file = ("--prompt-file", tmp_path / "p.jsonl", "-o", "%d.png")
    assert words in refused(3, "generate", *file, model=weightless)


def test_passes_that_cannot_fit(refused: Refused, weightless: Path) -> None:
    """Refuses before it loads weights, and names the batch size that fits; drafts make passes larger."""
    count = ("--batch-count", 100_000, "--batch-size", 100_000, "-q")

    def most(*arguments: object) -> int:
        words = ("--class", 1, *count, *arguments, "-o", "%d.png")
        line = refused(6, "generate", *words, model=weightless)
        found = re.search(r"the passes of \d+ images need .* batch_size (\d+) fits", line)
        assert found, line
        return int(found[1])

    alone, unguided, drafted = most(), most("--cfg-scale", 1), most(*EXACT, "--gamma", 7)
    assert 1.5 < unguided / alone < 2.5 and 6 < alone / drafted < 10.5


def test_bundles_of_codes_refuse_the_options(refused: Refused, tiny_bundle: Path) -> None:
    for given in (("--method", "cspd"), ("--steps", 3), ("--method", "sjd", "--gamma", 3)):
        message = refused(2, "generate", "-p", "a", "-o", "x.png", *given, model=tiny_bundle)
        assert "continuous" in message


@pytest.mark.parametrize("role", ["target", "drafter small"])
@pytest.mark.parametrize(
    ("change", "steps"),
    [
        ({}, STEPS - 1),
        ({}, STEPS + 1),
        ({"channels": CHANNELS + 1}, STEPS),
        ({"classes": CLASSES - 1}, STEPS),
        ({"classes": CLASSES + 1}, STEPS),
        ({"positions": TOKENS + 1}, STEPS),
    ],
    ids=str,
)
def test_a_network_of_other_tokens_is_refused(
    refused: Refused, mar: Path, tmp_path: Path, role: str, change: dict[str, int], steps: int
) -> None:
    """Refuses an archive that disagrees with the manifest."""
    folder = Path(shutil.copytree(mar, tmp_path / "bundle"))
    shape, file = (SHAPE, "target.pt") if role == "target" else (DRAFT_SHAPE, "drafter-small.pt")
    network = TargetModule(random_model(replace(shape, **change)), schedule(str(steps)))
    write_archive(network, tmp_path / "other.pt")
    replace_file(folder, file, (tmp_path / "other.pt").read_bytes())
    message = refused(4, "generate", "--class", 1, *EXACT, "-o", "x.png", model=folder)
    assert role in message
    assert f"manifest.json has prompt.classes {CLASSES}, target.hidden " in message
    sizes = f"tokens.channels {CHANNELS}, grids of {TOKENS} tokens and diffusion.steps {STEPS}"
    assert sizes in message


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda manifest: manifest["diffusion"].update(steps=1), "diffusion.steps: got 1"),
        (lambda manifest: manifest["tokens"].update(channels=0), "tokens.channels: got 0"),
        (lambda manifest: manifest["prompt"].update(classes=0), "prompt.classes: got 0"),
        (lambda manifest: manifest["drafters"]["small"].update(kind="medusa", heads=2), "drafters.small.kind medusa disagrees with tokens.kind continuous"),
        (lambda manifest: manifest["drafters"]["small"].update(steps=5), "unknown field drafters.small.steps"),
        (lambda manifest: manifest["sampling"]["schedule"].update(kind="cosine"), "sampling.schedule.kind"),
        (lambda manifest: manifest["grids"].append({"rows": 1, "columns": 2, "width": 16, "height": 8}), "got 2 tokens, expected 16"),
    ],
)  # fmt: skip
def test_a_manifest_that_disagrees_is_refused(
    refused: Refused, weightless: Path, tmp_path: Path, change: Any, words: str
) -> None:
    folder = Path(shutil.copytree(weightless, tmp_path / "bundle"))
    edit_manifest(folder, change)
    assert words in refused(4, "generate", "--class", 1, "-o", "x.png", model=folder)
    assert words in refused(4, "inspect", model=folder)


@pytest.mark.parametrize(
    ("part", "field", "value"), [("target", "hidden", 33), ("prompt", "classes", CLASSES + 1)]
)
def test_a_field_that_disagrees_with_the_target_is_named(
    refused: Refused, mar: Path, tmp_path: Path, part: str, field: str, value: int
) -> None:
    folder = Path(shutil.copytree(mar, tmp_path / "bundle"))
    edit_manifest(folder, lambda manifest: manifest[part].update({field: value}))
    message = refused(4, "generate", "--class", 1, *EXACT, "-o", "x.png", model=folder)
    assert f"{folder / 'manifest.json'} has " in message and f"{part}.{field} {value}, " in message


def test_other_outputs_and_commands(cli: Cli, ran: Cli, mar: Path, tmp_path: Path) -> None:
    files = (
        "--trace",
        "t.jsonl",
        "--acceptance-map",
        "m.png",
        "--growth",
        "g.png",
        "--grid",
        "s.png",
    )
    result = ran("generate", "--class", 1, "-b", 6, "-o", "%d.png", *EXACT, "-v", *files, model=mar)
    assert "tries to sample after rejections" in result.stderr
    assert all((tmp_path / name).is_file() for name in files[1::2])
    report = json.loads(cli("inspect", "--json", model=mar).stdout)
    assert report["methods"] == ["ar", "cspd"]
    text = cli("inspect", model=mar).stdout
    assert "continuous, 4 channels, 5 denoising steps" in text
    assert "cfg-scale 2.00, growing from 1 to it, temperature 1.00" in text
    # fp32 latents, the input of a layer and its widest product.
    context = TOKENS * (CHANNELS + 5 * 32) * 4
    slot = report["grids"][0]["guided_slot"]
    assert slot == {"cache_slots": TOKENS, "target_bytes": 2 * context, "drafter_bytes": {}}
    assert "target: ok" in cli("check", model=mar).stdout
    measured = ran("bench", "--class", 1, "--methods", "ar,cspd:gamma=2:prefill=0.1", "--repeats", 1,
                   "--json", model=mar)  # fmt: skip
    samples = json.loads(measured.stdout)["samples"]
    assert {sample["method"] for sample in samples} == {"ar", "cspd:gamma=2:prefill=0.1"}
