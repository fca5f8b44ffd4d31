"""Weights in 8 and 4 bits, rounded at export or at load, and caches in 8 bits."""

from __future__ import annotations

import json
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from models.llamagen.config import GPTConfig
from tests.e2e.support import CODES, Cli, Refused, add_drafter, export_bundle

CONFIG = GPTConfig(
    dim=64, n_layer=2, n_head=2, ffn_dim=128, vocab_size=CODES, grid=4, cls_token_num=1,
    num_classes=9, model_type="c2i",
)  # fmt: skip


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Writes a bundle with a drafter and fixed weights, whose target is stored in a precision."""
    made: dict[str, Path] = {}

    def make(dtype: str) -> Path:
        if dtype not in made:
            folder = tmp_path_factory.mktemp(dtype)
            made[dtype] = export_bundle(folder, CONFIG, "--dtype", f"target={dtype}")
            add_drafter(made[dtype])
        return made[dtype]

    return make


def codes(cli: Cli, folder: Path, model: Path, *arguments: object) -> list[int]:
    """The codes of an image."""
    file = folder / "codes.json"
    words = ("--class", 3, "--seed", 5, "-q", "--overwrite", *arguments)
    result = cli("generate", *words, "-o", folder / "x.png", "--save-codes", file, model=model)
    assert result.returncode == 0, result.stderr
    return json.loads(file.read_text())["images"][0]["codes"]


@pytest.mark.parametrize("dtype", ["int8", "int4"])
def test_stored_and_rounded_at_load_generate_the_same(
    cli: Cli, stored: Callable[[str], Path], tmp_path: Path, dtype: str
) -> None:
    kept = codes(cli, tmp_path, stored(dtype))
    assert kept == codes(cli, tmp_path, stored(dtype), "--dtype", dtype)
    assert kept == codes(cli, tmp_path, stored("bf16"), "--dtype", dtype)


@pytest.mark.parametrize("dtype", ["int8", "int4"])
def test_greedy_speculation_is_greedy_decoding(
    cli: Cli, stored: Callable[[str], Path], tmp_path: Path, dtype: str
) -> None:
    greedy = ("--temperature", 0, "--dtype", dtype)
    expected = codes(cli, tmp_path, stored("bf16"), "--method", "ar", *greedy)
    for tree in ("chain-3", "lantern-26", "dynamic"):
        method = ("--method", "eagle", "--tree", tree)
        assert codes(cli, tmp_path, stored("bf16"), *method, *greedy) == expected


def test_check_prints_the_distance(ran: Cli, stored: Callable[[str], Path]) -> None:
    result = ran("check", model=stored("int8"))
    line = next(line for line in result.stdout.splitlines() if line.startswith("target: ok"))
    assert "% from bf16" in line


@pytest.mark.parametrize("dtype", ["bf16", "fp32", "int4"])
def test_stored_weights_have_one_precision(
    refused: Refused, stored: Callable[[str], Path], tmp_path: Path, dtype: str
) -> None:
    words = ("generate", "--class", 3, "--dtype", dtype, "-o", tmp_path / "x.png")
    message = refused(2, *words, model=stored("int8"))
    assert "expected auto or int8" in message and not list(tmp_path.iterdir())


def test_greedy_speculation_over_rounded_caches(
    cli: Cli, stored: Callable[[str], Path], tmp_path: Path
) -> None:
    greedy = ("--temperature", 0, "--cache-dtype", "int8")
    expected = codes(cli, tmp_path, stored("bf16"), "--method", "ar", *greedy)
    for tree in ("chain-3", "lantern-26", "dynamic"):
        method = ("--method", "eagle", "--tree", tree)
        assert codes(cli, tmp_path, stored("bf16"), *method, *greedy) == expected


def test_an_image_records_its_rounded_cache(
    cli: Cli, ran: Cli, stored: Callable[[str], Path], tmp_path: Path
) -> None:
    codes(cli, tmp_path, stored("bf16"), "--dtype", "fp32", "--cache-dtype", "int8")
    first = (tmp_path / "x.png").rename(tmp_path / "first.png")
    again = tmp_path / "again.png"
    ran("generate", "-q", "--params-from", first, "-o", again, model=stored("bf16"))
    assert again.read_bytes() == first.read_bytes()
    assert b'"cache_dtype":"int8"' in first.read_bytes()


def test_inspect_counts_rounded_caches(ran: Cli, stored: Callable[[str], Path]) -> None:
    def target_bytes(*words: object) -> int:
        result = ran("inspect", "--json", *words, model=stored("bf16"))
        return json.loads(result.stdout)["grids"][0]["guided_slot"]["target_bytes"]

    head_dim = CONFIG.dim // CONFIG.n_head
    assert target_bytes("--cache-dtype", "int8") * 2 * head_dim == target_bytes() * (head_dim + 4)


def test_caches_of_other_dtypes_are_refused(
    refused: Refused, stored: Callable[[str], Path], tmp_path: Path
) -> None:
    words = ("generate", "--class", 3, "--cache-dtype", "int4", "-o", tmp_path / "x.png")
    message = refused(2, *words, model=stored("bf16"))
    assert "--cache-dtype: got 'int4', expected auto" in message and not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("stored_as", "used_as", "hint"),
    [
        ("bf16", "bf16", "a bundle exported with --dtype int8 or int4 is smaller"),
        ("bf16", "fp32", "dtype bf16 takes half of it"),
        ("int8", "int8", "a bundle exported with --dtype int4 is smaller"),
        ("int4", "int4", "they need more memory than there is"),
    ],
)
def test_weights_that_cannot_fit_are_refused_before_they_are_read(
    refused: Refused, stored: Callable[[str], Path], tmp_path: Path, stored_as: str, used_as: str, hint: str
) -> None:  # fmt: skip
    """An archive of four terabytes, most of them a hole of the file."""
    bundle = tmp_path / "large"
    shutil.copytree(stored(stored_as), bundle)
    target = bundle / "target.pt"
    with zipfile.ZipFile(target, "a") as archive:
        archive.start_dir += 1 << 42
        archive.comment = b"large"  # the table of contents is written again, behind the hole
    manifest = json.loads((bundle / "manifest.json").read_text())
    manifest["files"]["target.pt"]["bytes"] = target.stat().st_size
    (bundle / "manifest.json").write_text(json.dumps(manifest))
    words = ("--class", 1, "-o", "x.png", "--skip-checksums", "--dtype", used_as)
    message = refused(6, "generate", *words, model=bundle)
    needed = "8.00 TiB" if used_as == "fp32" else "4.00 TiB"
    assert f"the weights of target in {used_as} need {needed}" in message and hint in message
