"""Texts about images: what `describe` prints, with which methods, and what it refuses."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from tests.e2e.encode.images import PNG, colours
from tests.e2e.families import add_text_drafters, anole
from tests.e2e.support import Cli, Refused

DRAFTED = ("eagle", "eagle-2", "flash", "eagle+sjd", "flash+sjd")
METHODS = ("ar", "self", "ngram", "lookahead", "sjd", "scd", "sjd-pac", *DRAFTED)
QUESTION = "What is in the image?"


@pytest.fixture(scope="module")
def speaker(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Images of 64 x 64 pixels, 4 x 4 codes; 512 positions for a text; drafters of texts."""
    folder = tmp_path_factory.mktemp("anole")
    return add_text_drafters(folder, anole(folder, "--text"))


@pytest.fixture
def image(tmp_path: Path) -> Path:
    path = tmp_path / "a.png"
    colours(64, 64).save(path)
    return path


def changed(bundle: Path, folder: Path, change: Callable[[dict[str, Any]], object]) -> Path:
    """A copy with another manifest."""
    shutil.copytree(bundle, folder)
    file = folder / "manifest.json"
    manifest = json.loads(file.read_text(encoding="utf-8"))
    change(manifest)
    file.write_text(json.dumps(manifest), encoding="utf-8")
    return folder


def answer(
    ran: Cli, image: Path, speaker: Path, *words: object, question: str = QUESTION, most: int = 40
) -> dict[str, Any]:
    line = ("describe", image, "-p", question, "-t", 1, "--max-tokens", most, "--json", *words)
    return dict(json.loads(ran(*line, model=speaker).stdout))


def test_text_streams(ran: Cli, image: Path, speaker: Path) -> None:
    found = answer(ran, image, speaker)
    line = ("describe", image, "-p", QUESTION, "-t", 1, "--max-tokens", 40)
    printed = ran(*line, model=speaker, text=False)  # line ends stay as they are
    assert printed.stdout.decode() == found["text"] + "\n"
    assert found["temperature"] == 0.7 and found["top_p"] == 0.9
    assert found["method"] == "ar" and found["target_passes"] >= found["tokens"]
    if found["finish_reason"] == "length":
        assert b"note: the answer ends at 40 tokens" in printed.stderr


def test_seeds_and_settings_count(ran: Cli, image: Path, speaker: Path) -> None:
    first = answer(ran, image, speaker)
    assert answer(ran, image, speaker) == first
    assert answer(ran, image, speaker, "--seed", 7)["text"] != first["text"]
    greedy = answer(ran, image, speaker, "--temperature", 0)
    assert answer(ran, image, speaker, "--temperature", 0, "--seed", 9)["text"] == greedy["text"]
    assert answer(ran, image, speaker, "--top-k", 1, "--seed", 9)["text"] == greedy["text"]
    colours(64, 64, 1).save(image)
    assert answer(ran, image, speaker, "--temperature", 0)["text"] != greedy["text"]


@pytest.mark.parametrize("method", METHODS)
def test_methods_give_the_same_greedy_text(
    ran: Cli, image: Path, speaker: Path, method: str
) -> None:
    greedy = ("--temperature", 0, "--dtype", "fp32")
    found = answer(ran, image, speaker, *greedy, "--method", method)
    assert found["text"] == answer(ran, image, speaker, *greedy)["text"]
    assert found["method"] == method and found["tokens"] == 40
    if method in DRAFTED:
        assert found["target_passes"] < 40  # drafts are accepted
    answer(ran, image, speaker, "--method", method)  # sampled, too


def without_text_drafters(manifest: dict[str, Any]) -> None:
    del manifest["text"]["drafters"]


def drafter_of_images_alone(manifest: dict[str, Any]) -> None:
    manifest["text"]["drafters"] = {"main": {**manifest["drafters"].pop("main"), "max_length": 600}}


def test_drafters_of_texts_and_of_images_are_apart(
    refused: Refused, ran: Cli, image: Path, speaker: Path, tmp_path: Path
) -> None:
    """What names a drafter of the other kind, or lacks one, is refused; old bundles are as they were."""
    line = ("describe", image, "--device", "cpu", "--method")
    plain = changed(speaker, tmp_path / "plain", without_text_drafters)
    message = refused(2, *line, "eagle", model=plain)
    assert "got 'eagle', expected for texts ar, self, ngram" in message
    assert (
        "text.drafters has none of kind eagle; add one with lamplighter-export drafter --text"
        in message
    )
    assert "none of kind flash; add one with lamplighter-export flash" in refused(
        2, *line, "flash", model=plain
    )
    assert answer(ran, image, plain, "--method", "sjd")["tokens"] == 40
    message = refused(2, *line, "eagle", "--drafter", "main", model=speaker)
    assert "--drafter: got 'main', this bundle has words" in message
    words = (
        "generate",
        "-p",
        "a red boat",
        "--method",
        "eagle",
        "--drafter",
        "words",
        "-o",
        "a.png",
    )
    assert "--drafter: got 'words', this bundle has main" in refused(2, *words, model=speaker)
    odd = changed(speaker, tmp_path / "odd", drafter_of_images_alone)
    message = refused(4, *line, "eagle", model=odd)
    assert (
        "drafter main: got logits of 48 ids, expected 10192, all but the codes of images" in message
    )


def test_a_stop_id_ends_it(ran: Cli, image: Path, speaker: Path, tmp_path: Path) -> None:
    """Also where more was drafted behind it."""
    greedy = ("--temperature", 0, "--dtype", "fp32")
    whole = answer(ran, image, speaker, *greedy)
    assert whole["finish_reason"] == "length"
    odd = changed(
        speaker, tmp_path / "odd", lambda m: m["text"].update(stop=list(range(8198, 10240, 5)))
    )
    found = [answer(ran, image, odd, *greedy, "--method", method) for method in METHODS]
    assert len({one["text"] for one in found}) == 1
    assert found[0]["finish_reason"] == "stop" and found[0]["tokens"] < whole["tokens"]
    assert whole["text"].startswith(found[0]["text"])


def test_one_token(ran: Cli, image: Path, speaker: Path) -> None:
    for method in ("ar", "sjd"):
        found = answer(ran, image, speaker, "--method", method, most=1)
        assert found["tokens"] == 1 and found["finish_reason"] == "length"


def test_images_of_other_sizes_and_empty_questions(ran: Cli, image: Path, speaker: Path) -> None:
    colours(90, 70).save(image)
    texts = {
        answer(ran, image, speaker, "--fit", fit)["text"] for fit in ("crop", "pad", "stretch")
    }
    assert len(texts) == 3
    empty = answer(ran, image, speaker, question="")
    assert empty["prompt_tokens"] == 1 + 1 + 16 + 1 + 1


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("--method", "eagle-3"), 2, "--method: got 'eagle-3', expected for texts ar, eagle, eagle-2, flash"),
        (("--method", "auto"), 2, "--method: got 'auto'"),
        (("--method", "gsd"), 2, "--method: got 'gsd'"),
        (("--method", "sjd", "--rule", "lenient"), 2, "with rule 'lenient'"),
        (("--method", "zipar"), 2, "--method: got 'zipar'"),
        (("--temperature", "1e9"), 2, "--temperature: got 1e+09, expected a number of 0 to 1000000"),
        (("--top-p", 0), 2, "--top-p: got 0, expected a number in (0, 1]"),
        (("--max-tokens", 0), 2, "--max-tokens: got 0, expected 1 or more"),
        (("--max-tokens", 500), 2, "--max-tokens: got 500, expected 1 to "),
        (("-p", "why " * 600), 3, "prompt: got "),
        (("--fit", "squeeze"), 2, "fit: got 'squeeze'"),
        (("--seed", "x"), 2, "--seed: got 'x'"),
    ],
)  # fmt: skip
def test_refused(
    refused: Refused, image: Path, speaker: Path, words: tuple[object, ...], code: int, message: str
) -> None:
    assert message in refused(code, "describe", image, "--device", "cpu", *words, model=speaker)


def test_bad_images(refused: Refused, speaker: Path, tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(PNG[: len(PNG) // 2])
    assert "cut off" in refused(3, "describe", "a.png", model=speaker)
    assert "none.png" in refused(3, "describe", "none.png", model=speaker)
    Image.new("1", (8200, 8200)).save(tmp_path / "large.png")
    assert "got 8200x8200 pixels" in refused(3, "describe", "large.png", model=speaker)


def test_bundles_that_describe_nothing(
    refused: Refused, image: Path, bundle: Path, speaker: Path, tmp_path: Path
) -> None:
    message = refused(4, "describe", image, model=bundle)
    assert "cannot describe images: it lacks text" in message and "--text" in message
    copy = changed(speaker, tmp_path / "copy", lambda m: m["modules"].pop("image_encoder"))
    assert "cannot read images: it lacks image_encoder" in refused(4, "describe", image, model=copy)


def test_images_are_generated_as_before(ran: Cli, speaker: Path, tmp_path: Path) -> None:
    ran("generate", "-p", "a red boat", "--method", "eagle", "-o", "a.png", model=speaker)
    assert (tmp_path / "a.png").is_file()


def test_inspect_says_it(ran: Cli, speaker: Path) -> None:
    shown = ran("inspect", model=speaker).stdout
    assert "texts                 about images, 512 positions for all, temperature 0.70" in shown
    drafters = [line for line in shown.splitlines() if line.startswith("drafter ")]
    assert [line.endswith(", of texts") for line in drafters] == [True, False, True]
    assert "words: ok" in ran("check", speaker).stdout
