"""Untrusted files: images, trees, tables and damaged weights."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.support import Cli, Refused, damaged

EAGLE = ("--method", "eagle")


def chunks(png: bytes) -> list[tuple[bytes, bytes]]:
    found, at = [], 8
    while at < len(png):
        (length,) = struct.unpack(">I", png[at : at + 4])
        found.append((png[at + 4 : at + 8], png[at + 8 : at + 8 + length]))
        at += 12 + length
    return found


def forge(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Changes the parameters in an image file."""
    parts = []
    for kind, data in chunks(path.read_bytes()):
        head, mark, text = data.partition(b"lamplighter\0\0\0\0\0")
        if kind == b"iTXt" and not head and mark:
            image = json.loads(text)
            change(image)
            data = mark + json.dumps(image).encode()
        crc = struct.pack(">I", zlib.crc32(kind + data))
        parts.append(struct.pack(">I", len(data)) + kind + data + crc)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(parts))


def test_images_carry_their_tree(generate: Any, tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text('{"paths": [[0], [1], [0, 0]]}')
    generate("-p", "a", *EAGLE, "--tree", "t.json", "-o", "a.png")
    (tmp_path / "t.json").unlink()
    (line,) = generate("--params-from", "a.png", "-o", "b.png")
    assert line["tree"] == "t.json" and line["tree_paths"] == [[0], [1], [0, 0]]
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()


@pytest.mark.parametrize("path", ["/etc/passwd", "/dev/zero", "./pipe", "../t.json"])
@pytest.mark.parametrize("key", ["tree", "neighbours"])
def test_images_cannot_choose_files(
    generate: Any, refused: Refused, drafter_bundle: Path, tmp_path: Path, key: str, path: str
) -> None:
    os.mkfifo(tmp_path / "pipe")
    generate("-p", "a", *EAGLE, "--tree", "chain-2", "-o", "a.png")
    forge(tmp_path / "a.png", lambda image: image.update({key: path}))
    words = refused(3, "generate", "--params-from", "a.png", "-o", "b.png", model=drafter_bundle)
    assert f"was generated with the file {path}" in words and f"give --{key} FILE" in words
    if key == "tree":  # files of the user are read
        generate("--params-from", "a.png", "--tree", "chain-3", "-o", "b.png")


def test_images_with_bad_trees(
    generate: Any, refused: Refused, drafter_bundle: Path, tmp_path: Path
) -> None:
    generate("-p", "a", *EAGLE, "--tree", "chain-2", "-o", "a.png")
    forge(tmp_path / "a.png", lambda image: image.update(tree_paths=[[5]]))
    words = refused(3, "generate", "--params-from", "a.png", "-o", "b.png", model=drafter_bundle)
    assert "tree: path [5]" in words


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"temperature": -1}, "temperature: got -1"),
        ({"cfg_scale": 1e9}, "cfg_scale: got 1e+09"),
        ({"top_k": -3}, "top_k: got -3"),
        ({"top_p": 0}, "top_p: got 0"),
        ({"cfg_interval": -2}, "cfg_interval: got -2"),
        ({"width": 31}, "size: got 31x32"),
        ({"prompt": "a\0b"}, "prompt: got a zero byte"),
        ({"prompt": "a", "negative_prompt": "b"}, "negative_prompt: got"),
        ({"dtype": "int3"}, "dtype: got 'int3'"),
        ({"cache_dtype": "int3"}, "cache_dtype: got 'int3'"),
        ({"method": "guess"}, "method: got 'guess'"),
        ({"rule": "guess"}, "rule: got 'guess', expected exact"),
        ({"tree": "chain-x"}, "tree"),
        ({"drafter": "nobody"}, "drafter: got 'nobody'"),
        ({"method": "sjd", "init": "guess"}, "init: got 'guess'"),
        ({"method": "sjd", "tail": "guess"}, "tail: got 'guess'"),
        ({"method": "lantern++", "rule": "lantern++", "lambda": [0.5]}, "lambda: got 0.5"),
    ],
)
def test_images_with_settings_out_of_range(
    generate: Any,
    refused: Refused,
    drafter_bundle: Path,
    tmp_path: Path,
    changes: dict[str, Any],
    words: str,
) -> None:
    """Messages name the image and the field, because the user typed no flag."""
    generate("-p", "a", *EAGLE, "--tree", "chain-2", "-o", "a.png")

    def change(image: dict[str, Any]) -> None:
        if changes.get("method"):
            for key in ("tree", "rule", "children", "residual", "draft_guidance", "drafter"):
                image.pop(key, None)
        image.update(changes)

    forge(tmp_path / "a.png", change)
    line = refused(3, "generate", "--params-from", "a.png", "-o", "b.png", model=drafter_bundle)
    assert line.startswith("lamplighter: error: a.png: parameters: ") and words in line
    assert "--" not in line


def test_messages_name_flags_that_override_images(
    generate: Any, refused: Refused, drafter_bundle: Path, tmp_path: Path
) -> None:
    generate("-p", "a", *EAGLE, "--tree", "chain-2", "-o", "a.png")
    again = ("generate", "--params-from", "a.png", "-o", "b.png")
    for flag, value in (("--temperature", -1), ("--method", "guess"), ("--dtype", "int3")):
        line = refused(2, *again, flag, value, model=drafter_bundle)
        assert line.startswith(f"lamplighter: error: {flag}: got ")
    forge(tmp_path / "a.png", lambda image: image.update(temperature=-1))
    generate("--params-from", "a.png", "--temperature", 1, "-o", "b.png")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("generate", "-p", "a", *EAGLE, "--tree", "/dev/zero"), "a device or a pipe"),
        (("generate", "-p", "a", *EAGLE, "--tree", "./pipe"), "a device or a pipe"),
        (("generate", "-p", "a", *EAGLE, "--tree", "./large"), "expected at most 1048576"),
        (
            ("generate", "-p", "a", "--method", "lantern", "--neighbours", "/dev/zero"),
            "a device or a pipe",
        ),
        (
            ("generate", "-p", "a", "--method", "lantern", "--neighbours", "pipe"),
            "a device or a pipe",
        ),
        (("generate", "--prompt-file", "/dev/zero"), "it is a device"),
        (("generate", "--prompt-file", "huge"), "expected at most 1073741824"),
        (("generate", "-p", "a", "--config", "/dev/zero"), "it is a device"),
        (("generate", "-p", "a", "--config", "large"), "expected at most 1048576"),
        (("generate", "--params-from", "/dev/zero"), "it is a device"),
        (("generate", "--params-from", "huge"), "expected at most 1073741824"),
        (("decode", "/dev/zero"), "it is a device"),
    ],
)
def test_files_without_an_end(
    refused: Refused, drafter_bundle: Path, tmp_path: Path, arguments: tuple[str, ...], words: str
) -> None:
    os.mkfifo(tmp_path / "pipe")
    for name, size in (("large", 1 << 20), ("huge", 1 << 30)):
        with (tmp_path / name).open("wb") as file:
            file.truncate(size + 1)  # a sparse file
    assert words in refused(3, *arguments, model=drafter_bundle, timeout=60)


def test_prompts_may_come_through_pipes(
    cli: Cli, lamplighter: Path, tiny_bundle: Path, tmp_path: Path
) -> None:
    line = '"$0" generate -m "$1" --prompt-file <(printf "a cat\\na dog\\n") -o %d.png'
    done = subprocess.run(
        ["bash", "-c", line, lamplighter, tiny_bundle],
        cwd=tmp_path, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert cli("generate", "--prompt-file", "-", "-o", "c.png", input="a cat").returncode == 0
    assert cli("generate", "--prompt-file", "/dev/stdin", "-o", "d.png", input="x").returncode == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0.png", "1.png", "c.png", "d.png"]


@pytest.mark.parametrize("source", ["--config", "--params-from", "--prompt-file"])
def test_nested_values(refused: Refused, generate: Any, tmp_path: Path, source: str) -> None:
    deep = '{"a": ' + "[" * 80_000 + "]" * 80_000 + "}"
    (tmp_path / "deep").write_text(deep)
    if source == "--params-from":
        generate("-p", "a", "-o", "deep.png")
        (tmp_path / "deep").write_bytes(
            (tmp_path / "deep.png").read_bytes().replace(b"lamplighter\0", b"lamplightes\0")
        )
        data = b"lamplighter\0\0\0\0\0" + deep.encode()
        chunk = struct.pack(">I", len(data)) + b"iTXt" + data
        chunk += struct.pack(">I", zlib.crc32(b"iTXt" + data))
        png = (tmp_path / "deep.png").read_bytes()
        (tmp_path / "deep").write_bytes(png[:-12] + chunk + png[-12:])
    words = refused(3, "generate", source, "deep", "-o", "x.png")
    assert "nested more than 200 deep" in words


@pytest.mark.parametrize("temperature", [1, 0])
@pytest.mark.parametrize("method", ["eagle", "eagle-2"])
def test_drafters_with_nan_weights(
    refused: Refused, drafter_bundle: Path, tmp_path_factory: pytest.TempPathFactory, method: str,
    temperature: int,
) -> None:  # fmt: skip
    folder = tmp_path_factory.mktemp("damaged") / "bundle"
    bundle = damaged(drafter_bundle, folder, "drafter-main.pt", lambda name: "head" in name)
    words = refused(4, "generate", "-p", "a", "--method", method, "--temperature", temperature,
                    "-q", "-o", "a.png", model=bundle)  # fmt: skip
    assert "drafter" in words and "NaN or infinite" in words


def test_a_drafter_that_fails_after_some_tokens(
    refused: Refused, drafter_bundle: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("damaged") / "bundle"
    half = slice(
        0, None, 2
    )  # of the embedding's rows: it drafts until one of these tokens is committed
    bundle = damaged(
        drafter_bundle, folder, "drafter-main.pt", lambda name: "embedding" in name, half
    )
    words = refused(
        4, "generate", "-p", "a", "--method", "eagle", "-q", "-o", "a.png", model=bundle
    )
    assert "drafter" in words and "NaN or infinite" in words


def test_nan_pixels(
    refused: Refused, tiny_bundle: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("damaged") / "bundle"
    bundle = damaged(
        tiny_bundle, folder, "image_decoder.pt", lambda name: name.startswith("blocks")
    )
    words = refused(4, "generate", "-p", "a", "-q", "-o", "a.png", model=bundle)
    assert "image_decoder: got pixels that are NaN" in words


@pytest.mark.parametrize(("flag", "images"), [("--grid", 300_000), ("--acceptance-map", 100_000)])
def test_sheets_too_large_are_refused_before_generating(
    refused: Refused, flag: str, images: int
) -> None:
    words = refused(2, "generate", "-p", "a", "-b", images, "-o", "%d.png", flag, "s.png")
    assert flag in words and "expected at most 16384 a side" in words


def test_long_names(cli: Cli, refused: Refused, tmp_path: Path) -> None:
    longest = "x" * 251 + ".png"
    assert cli("generate", "-p", "a", "-o", longest).returncode == 0
    assert [path.name for path in tmp_path.iterdir()] == [longest]
    assert "too long" in refused(7, "generate", "-p", "a", "-o", "x" + longest)


def test_one_of_many_processes_writes(lamplighter: Path, tiny_bundle: Path, tmp_path: Path) -> None:
    command = [lamplighter, "generate", "-q", "-m", tiny_bundle, "-p", "a", "-o", "a.png"]
    running = [subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE) for _ in range(4)]
    codes = [(process.communicate(timeout=300), process.returncode)[1] for process in running]
    assert sorted(codes) == [0, 7, 7, 7]
    assert [path.name for path in tmp_path.iterdir()] == ["a.png"]
