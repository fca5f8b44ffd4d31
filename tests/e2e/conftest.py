"""Small bundles with random weights, and the command line under test."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from models.export.drafters.draft_model import attach_model
from models.llamagen.config import GPTConfig
from tests.e2e.browser import CHROMIUM, Browser
from tests.e2e.continuous_bundle import write_continuous
from tests.e2e.families import TOKEN_FAMILIES
from tests.e2e.support import CAPTION, CODES, Cli, Refused, Result, add_drafter, export_bundle


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> None:
    """The user's measurements are not for tests, nor theirs for the user."""
    os.environ["XDG_CACHE_HOME"] = str(tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="session")
def tiny_bundle(tmp_path_factory: pytest.TempPathFactory, root: Path) -> Path:
    """A caption bundle for 32 x 32 pixels."""
    golden = Path(os.environ.get("LAMPLIGHTER_GOLDEN", root / "tests/golden/cases/llamagen"))
    config = GPTConfig(
        dim=32, n_layer=2, n_head=2, ffn_dim=48, vocab_size=CODES, grid=4, cls_token_num=120,
        caption_dim=64,
    )  # fmt: skip
    folder = tmp_path_factory.mktemp("tiny")
    return export_bundle(folder, config, "--t5", golden / "llamagen_t5" / "flan-t5-tiny")


@pytest.fixture(scope="session")
def drafter_bundle(tiny_bundle: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny bundle with a drafter."""
    folder = tmp_path_factory.mktemp("drafter") / "bundle"
    shutil.copytree(tiny_bundle, folder)
    add_drafter(folder)
    return folder


@pytest.fixture(scope="session")
def class_bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle of nine classes for 32 x 32 pixels."""
    config = GPTConfig(
        dim=32, n_layer=1, n_head=2, ffn_dim=48, vocab_size=CODES, grid=4, cls_token_num=1,
        num_classes=9, model_type="c2i",
    )  # fmt: skip
    return export_bundle(tmp_path_factory.mktemp("classes"), config)


@pytest.fixture(scope="session")
def mar(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle of seven classes and continuous tokens for 32 x 32 pixels."""
    return write_continuous(tmp_path_factory.mktemp("continuous"))


@pytest.fixture(scope="session")
def family(
    tiny_bundle: Path, class_bundle: Path, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], Path]:
    """The tiny bundle of a family, with a drafter, and with its own target as a draft model."""

    @cache
    def make(name: str) -> Path:
        folder = tmp_path_factory.mktemp(name)
        if name in TOKEN_FAMILIES:
            made = TOKEN_FAMILIES[name](folder)
        else:
            made = folder / "bundle"
            source = {"llamagen-t2i": tiny_bundle, "llamagen-c2i": class_bundle}[name]
            shutil.copytree(source, made)
            add_drafter(made)
        attach_model(made, made, "twin")
        return made

    return make


@pytest.fixture(scope="session")
def bundle(demo_bundle: Path, request: pytest.FixtureRequest) -> Path:
    """The bundle for image tests: LAMPLIGHTER_TEST_BUNDLE, else the shipped one, else a tiny one."""
    named = os.environ.get("LAMPLIGHTER_TEST_BUNDLE")
    if named:
        return Path(named).resolve()
    if (demo_bundle / "manifest.json").is_file():
        return demo_bundle
    return request.getfixturevalue("tiny_bundle")


@pytest.fixture
def cli(lamplighter: Path, tiny_bundle: Path, tmp_path: Path) -> Cli:
    """Runs the program in an empty folder; `model=None` leaves the choice to the program."""

    def run(*arguments: object, model: Path | None = tiny_bundle, **options: object) -> Result:
        environment = {**os.environ, **options.pop("env", {})}  # type: ignore[dict-item]
        environment.pop("LAMPLIGHTER_MODEL", None)
        if model is not None:
            environment["LAMPLIGHTER_MODEL"] = str(model)
        settings = {
            "capture_output": True,
            "text": True,
            "timeout": 300,
            "cwd": tmp_path,
            **options,
        }
        command = [str(lamplighter), *map(str, arguments)]
        return subprocess.run(command, env=environment, **settings)  # type: ignore[call-overload]

    return run


@pytest.fixture
def ran(cli: Cli) -> Cli:
    """Runs the program, which must succeed."""

    def run(*arguments: object, **options: object) -> Result:
        result = cli(*arguments, **options)
        assert result.returncode == 0, result.stderr
        return result

    return run


@pytest.fixture
def refused(cli: Cli, tmp_path: Path) -> Refused:
    """Runs the program, which must fail with one line and an exit code and leave no file behind."""

    def run(code: int, *arguments: object, **options: object) -> str:
        before = sorted(tmp_path.rglob("*"))
        result = cli(*arguments, **options)
        assert result.returncode == code, result.stderr
        assert result.stdout == ""
        assert result.stderr.startswith("lamplighter: error: ")
        assert result.stderr.count("\n") == 1 and result.stderr.endswith("\n")
        assert sorted(tmp_path.rglob("*")) == before
        return result.stderr

    return run


@pytest.fixture
def generate(ran: Cli, drafter_bundle: Path) -> Any:
    """Generates with the drafter's bundle and returns the JSON lines."""

    def run(*arguments: object, model: Path = drafter_bundle) -> list[dict[str, Any]]:
        result = ran("generate", "--json", *arguments, model=model)
        return [json.loads(line) for line in result.stdout.splitlines()]

    return run


@pytest.fixture
def saved(ran: Cli, demo_bundle: Path, tmp_path: Path) -> Path:
    """The codes of an image of the demo, at temperature 0."""
    words = ("-p", CAPTION, "--temperature", 0, "--save-codes", "boat.json", "-o", "boat.png")
    ran("generate", *words, model=demo_bundle)
    return tmp_path / "boat.json"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine (apt-get install chromium)")
    browser = Browser(tmp_path_factory.mktemp("profile"))
    for domain in ("Runtime", "Log", "Network"):
        browser.call(f"{domain}.enable")
    yield browser
    browser.close()
