"""Bundles with token prompts: damaged tokenizers, contradictory manifests, missing parts."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.support import Cli, Refused, edit_manifest, replace_file

GENERATE = ("generate", "-p", "a", "-o", "x.png")


@pytest.fixture
def copy(family: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle to break."""
    folder = tmp_path_factory.mktemp("copy") / "bundle"
    shutil.copytree(family("lumina-mgpt"), folder)
    return folder


def test_tokenizers_that_are_none(refused: Refused, copy: Path) -> None:
    whole = json.loads((copy / "tokenizer.json").read_text(encoding="utf-8"))
    unigram = {**whole, "model": {"type": "Unigram", "vocab": [["a", -1.0]]}}
    merges = {**whole, "model": {**whole["model"], "merges": ["neither piece"]}}
    contents = [b"", b"<html>not found</html>", b"{}", b"[1, 2]", b'{"model": {"type": "BPE"}}']
    contents += [json.dumps(value).encode() for value in (unigram, merges)]
    for content in contents:
        replace_file(copy, "tokenizer.json", content)
        assert "tokenizer.json" in refused(4, *GENERATE, model=copy), content[:60]


def test_tokenizers_truncated_anywhere(refused: Refused, copy: Path) -> None:
    content = (copy / "tokenizer.json").read_bytes().rstrip()
    for cut in range(1, 8):
        replace_file(copy, "tokenizer.json", content[: len(content) * cut // 8])
        assert "tokenizer.json" in refused(4, *GENERATE, model=copy)


def test_tokenizers_with_ids_that_have_no_embedding(refused: Refused, copy: Path) -> None:
    """First only in the list of special pieces, which contradicts the vocabulary, then in both."""
    content = json.loads((copy / "tokenizer.json").read_text(encoding="utf-8"))
    for token in content["added_tokens"]:
        if token["content"] == "<reserved08706>":
            token["id"] = 110_000
    replace_file(copy, "tokenizer.json", json.dumps(content).encode())
    assert "110000" in refused(4, *GENERATE, model=copy)
    content["model"]["vocab"]["<reserved08706>"] = 110_000
    replace_file(copy, "tokenizer.json", json.dumps(content).encode())
    refused(4, *GENERATE, model=copy)


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        (("grids", 0, "row_end"), [8803, 8804], "row_end"),
        (("grids", 0, "row_end"), [70000], "70000"),
        (("grids", 0, "before"), [-1], "-1"),
        (("prompt", "text"), "no place for the caption", "{prompt}"),
        (("prompt", "length"), 2, "prompt.length"),
        (("prompt", "align"), "middle", "middle"),
        (("cache", "max_length"), 84 + 12, "cache.max_length"),
        (("tokenizer", "kind"), "t5", "tokenizer"),
        (("tokenizer", "max_length"), 0, "max_length"),
        (("decoder", "pixels"), "ceiling", "ceiling"),
    ],
)
def test_manifests_that_contradict_themselves(
    refused: Refused, copy: Path, path: tuple[Any, ...], value: object, words: str
) -> None:
    def change(manifest: dict) -> None:  # type: ignore[type-arg]
        part = manifest
        for key in path[:-1]:
            part = part[key]
        part[path[-1]] = value

    edit_manifest(copy, change)
    assert words in refused(4, "inspect", model=copy)


def test_without_a_tokenizer(cli: Cli, refused: Refused, copy: Path) -> None:
    def change(manifest: dict) -> None:  # type: ignore[type-arg]
        manifest["files"].pop(manifest.pop("tokenizer")["file"])

    edit_manifest(copy, change)
    assert "tokenizer" in refused(4, *GENERATE, model=copy)
    report = json.loads(cli("inspect", "--json", model=copy).stdout)
    assert report["methods"] == [] and report["missing"]["lantern"] == ["tokenizer"]
    assert cli("check", model=copy).returncode == 0


@pytest.mark.parametrize(("field", "value"), [("kv_heads", 1), ("head_dim", 2)])
def test_caches_that_the_archive_does_not_fit(
    refused: Refused, copy: Path, field: str, value: int
) -> None:
    edit_manifest(copy, lambda manifest: manifest["cache"].update({field: value}))
    line = refused(4, *GENERATE, model=copy)
    assert f"; check cache.{field} in manifest.json" in line


def test_archives_that_disagree_with_the_manifest(refused: Refused, copy: Path) -> None:
    """A target whose codebook size differs from the manifest."""

    def change(manifest: dict) -> None:  # type: ignore[type-arg]
        manifest["tokens"]["codebook_size"] = manifest["target"]["head"] = 32
        manifest["decoder"]["codebook_size"] = 32

    edit_manifest(copy, change)
    assert "head" in refused(4, *GENERATE, model=copy)
