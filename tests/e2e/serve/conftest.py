"""Servers that end with the module, and the images that `generate` generates."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.e2e.serve.client import (
    PROMPT,
    Server,
    Start,
)
from tests.e2e.serve.edit_requests import CAPTION, IMAGE
from tests.e2e.support import Cli


@pytest.fixture(scope="module")
def start(
    lamplighter: Path, drafter_bundle: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Start]:
    """Starts servers, which end with the module."""
    processes: list[subprocess.Popen[str]] = []

    def run(
        *arguments: object, model: Path = drafter_bundle, env: dict[str, str] | None = None
    ) -> Server:
        environment = {**os.environ, **(env or {})}
        environment.pop("LAMPLIGHTER_MODEL", None)
        command = [str(lamplighter), "serve", "-m", str(model), "--port", "0", *map(str, arguments)]
        log = tmp_path_factory.mktemp("serve") / "log"
        with log.open("w") as errors:
            process = subprocess.Popen(
                command, env=environment, stdout=subprocess.PIPE, stderr=errors, text=True
            )
        processes.append(process)
        assert process.stdout is not None
        line = process.stdout.readline().strip()
        assert line.startswith("http://"), log.read_text()
        host, port = line.removeprefix("http://").rsplit(":", 1)
        process.args = [*command, log]  # for tests of what is printed
        return Server(process, host.strip("[]"), int(port))

    yield run
    for process in processes:
        process.kill()
        process.wait()


@pytest.fixture(scope="module")
def server(start: Start) -> Server:
    """One with small limits."""
    return start("-t", 1, "--queue", 40, "--max-images", 4, "--max-body", 20000, "-v")


@pytest.fixture(scope="module")
def plain(start: Start) -> Server:
    """One without flags of its own for clients."""
    return start("-t", 1)


@pytest.fixture(scope="module")
def open_server(start: Start) -> Server:
    """One with the limits that it has by itself."""
    server = start("-t", 1)
    assert server.generate(seed=1).status == 200
    return server


@pytest.fixture
def generated(cli: Cli, drafter_bundle: Path, tmp_path: Path) -> Callable[..., bytes]:
    """The PNG file that `generate` writes."""

    def run(*arguments: object) -> bytes:
        result = cli(
            "generate", "-p", PROMPT, "-t", 1, "-o", "one.png", "--overwrite", *arguments,
            model=drafter_bundle,
        )  # fmt: skip
        assert result.returncode == 0, result.stderr
        return (tmp_path / "one.png").read_bytes()

    return run


@pytest.fixture(scope="module")
def encoder_bundle(family: Callable[[str], Path]) -> Path:
    """Images of 64 x 48 pixels, 3 x 4 codes of 48."""
    return family("chameleon")


@pytest.fixture(scope="module")
def reader(start: Start, encoder_bundle: Path) -> Server:
    """One that reads images."""
    return start("-t", 1, "--max-body", 100000, model=encoder_bundle)


@pytest.fixture
def continued(cli: Cli, encoder_bundle: Path, tmp_path: Path) -> Callable[..., list[Path]]:
    """The images of `generate --from` with the same caption and seed."""

    def run(*words: object, image: bytes = IMAGE, count: int = 1) -> list[Path]:
        (tmp_path / "from.png").write_bytes(image)
        result = cli(
            "generate", "-p", CAPTION, "--seed", 7, "-t", 1, "--from", "from.png", *words,
            "--variations", count, "-o", "one-%d.png", "--overwrite", model=encoder_bundle,
        )  # fmt: skip
        assert result.returncode == 0, result.stderr
        return [tmp_path / f"one-{index}.png" for index in range(count)]

    return run


@pytest.fixture(scope="module")
def page_reader(start: Start, encoder_bundle: Path) -> Server:
    """One that reads images, for its page."""
    return start("-t", 1, "--method", "sjd", "--max-body", 100000, model=encoder_bundle)


@pytest.fixture
def given(tmp_path: Path) -> Callable[[bytes, str], Path]:
    def write(content: bytes, name: str = "boat.png") -> Path:
        (tmp_path / name).write_bytes(content)
        return tmp_path / name

    return write
