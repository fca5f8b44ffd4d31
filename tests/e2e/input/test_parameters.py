"""--params-from: the parameters of an image generate it again, or a note says why not."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.e2e.support import Cli, edit_manifest


def test_parameters_of_an_image_generate_it_again(cli: Cli, tmp_path: Path) -> None:
    given = ("-p", "a \u201ccat\u201d", "-s", 99, "--temperature", 0.7, "--top-k", 9)
    assert cli("generate", *given, "-o", "a.png").returncode == 0
    assert cli("generate", "--params-from", "a.png", "-o", "b.png").returncode == 0
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()
    changed = cli(
        "generate", "--params-from", "a.png", "-s", 98, "--top-k", 8, "-o", "c.png", "--json"
    )
    fields = json.loads(changed.stdout)
    assert (fields["seed"], fields["top_k"], fields["temperature"]) == (98, 8, 0.7)
    assert fields["prompt"] == "a \u201ccat\u201d"


@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
def test_parameters_of_an_image_include_its_precision(cli: Cli, tmp_path: Path, dtype: str) -> None:
    assert cli("generate", "-p", "x", "--dtype", dtype, "-o", "a.png").returncode == 0
    assert cli("generate", "--params-from", "a.png", "-o", "b.png").returncode == 0
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()
    other = cli("generate", "--params-from", "a.png", "--dtype", "fp32", "-o", "c.png", "--json")
    assert json.loads(other.stdout)["dtype"] == "fp32"


def test_parameters_generated_by_other_instructions_come_with_a_note(cli: Cli) -> None:
    portable = {"LAMPLIGHTER_ISA": "portable"}
    bf16 = ("generate", "-p", "x", "--dtype", "bf16", "--device", "cpu")
    generated = cli(*bf16, "-o", "a.png", "--json", env=portable)
    assert json.loads(generated.stdout)["instructions"] == "portable"
    same = cli("generate", "--params-from", "a.png", "-o", "b.png", env=portable)
    other = cli(
        "generate", "--params-from", "a.png", "-o", "c.png", env={"LAMPLIGHTER_ISA": "avx2"}
    )
    assert same.returncode == other.returncode == 0
    assert "note" not in same.stderr
    assert "LAMPLIGHTER_ISA=portable generates the same" in other.stderr
    single = cli("generate", "-p", "x", "--dtype", "fp32", "--json", env=portable)
    assert "instructions" not in json.loads(single.stdout)


def test_parameters_of_a_bundle_that_changed_come_with_a_note(
    cli: Cli, tiny_bundle: Path, tmp_path: Path
) -> None:
    changed = tmp_path / "changed"
    shutil.copytree(tiny_bundle, changed)
    edit_manifest(changed, lambda manifest: manifest.update(source="elsewhere"))
    assert cli("generate", "-p", "x", "-o", "a.png").returncode == 0
    same = cli("generate", "--params-from", "a.png", "-o", "b.png")
    other = cli("generate", "-m", changed, "--params-from", "a.png", "-o", "c.png")
    assert same.returncode == other.returncode == 0
    assert "note" not in same.stderr
    assert "a.png was generated with other files of bundle" in other.stderr


def test_parameters_of_another_bundle_come_with_a_note(
    cli: Cli, tiny_bundle: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    shutil.copytree(tiny_bundle, other)
    edit_manifest(other, lambda manifest: manifest.update(name="somebody-else"))
    assert cli("generate", "-p", "x", "-o", "a.png").returncode == 0
    result = cli("generate", "-m", other, "--params-from", "a.png", "-o", "b.png")
    assert result.returncode == 0
    assert "not with somebody-else: its settings are used" in result.stderr
