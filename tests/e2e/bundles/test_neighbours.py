"""Tables of neighbouring codes: the command neighbours, and generation with them."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

import numpy
import pytest
import torch
from safetensors.torch import load_file

from tests.e2e.support import CODES, Cli, Refused, edit_manifest, pixels, replace_file

FILE = "neighbours.safetensors"


@pytest.fixture
def copy(drafter_bundle: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A writable bundle with code vectors of different norms."""
    folder = tmp_path_factory.mktemp("copy") / "bundle"
    shutil.copytree(drafter_bundle, folder)
    decoder = torch.jit.load(str(folder / "image_decoder.pt"))
    random = torch.Generator().manual_seed(2)
    decoder.codebook *= 0.5 + torch.rand(CODES, 1, generator=random)
    decoder.save(str(folder / "other.pt"))
    replace_file(folder, "image_decoder.pt", (folder / "other.pt").read_bytes())
    (folder / "other.pt").unlink()
    return folder


def codebook(bundle: Path, name: str = "codebook") -> numpy.ndarray:  # type: ignore[type-arg]
    buffers = dict(torch.jit.load(str(bundle / "image_decoder.pt")).named_buffers())
    return buffers[name].double().numpy()


def nearest(vectors: numpy.ndarray) -> numpy.ndarray:  # type: ignore[type-arg]
    """All other codes, nearest first."""
    distances = ((vectors[:, None] - vectors[None]) ** 2).sum(-1)
    numpy.fill_diagonal(distances, -1)
    return distances.argsort(1, kind="stable")[:, 1:]


def table(path: Path) -> numpy.ndarray:  # type: ignore[type-arg]
    tensor = load_file(path)["neighbours"]
    assert tensor.dtype == torch.uint16
    return tensor.numpy().astype(numpy.int64)


def test_table_is_made_and_stored(cli: Cli, ran: Cli, copy: Path) -> None:
    before = json.loads((copy / "manifest.json").read_text())
    result = ran("neighbours", "--bundle", copy, model=None)
    assert result.stdout == f"{copy / FILE}\n"
    assert "codes: 40, neighbours of each: 39" in result.stderr  # all other codes
    assert (table(copy / FILE) == nearest(codebook(copy))).all()
    manifest = json.loads((copy / "manifest.json").read_text())
    content = (copy / FILE).read_bytes()
    assert manifest["files"].pop(FILE) == {
        "bytes": len(content),
        "sha256": hashlib.sha256(content).hexdigest(),
    }
    assert manifest.pop("neighbours") == {"file": FILE}
    assert manifest == before
    assert cli("check", copy).returncode == 0
    assert f"{FILE}, 39 for each of 40 codes" in cli("inspect", copy).stdout


def test_width_and_metric(cli: Cli, copy: Path, tmp_path: Path) -> None:
    vectors = codebook(copy)
    unit = vectors / numpy.linalg.norm(vectors, axis=1, keepdims=True)
    for metric, expected in (("l2", nearest(vectors)), ("cosine", nearest(unit))):
        result = cli("neighbours", "--k", 6, "--metric", metric, "-o", metric, "-q", model=copy)
        assert (result.returncode, result.stdout, result.stderr) == (0, f"{metric}\n", "")
        assert (table(tmp_path / metric) == expected[:, :6]).all()
    assert not (table(tmp_path / "l2") == table(tmp_path / "cosine")).all()
    assert not (copy / FILE).exists()


def test_archives_without_raw_vectors_give_the_rows_they_read(
    ran: Cli, demo_bundle: Path, tmp_path: Path
) -> None:
    if not (demo_bundle / "manifest.json").is_file():
        pytest.skip("no demo bundle")
    ran("neighbours", "--k", 20, "-o", "t", model=demo_bundle)
    buffers = dict(torch.jit.load(str(demo_bundle / "image_decoder.pt")).named_buffers())
    expected = nearest(codebook(demo_bundle, "codebook" if "codebook" in buffers else "table"))
    assert (table(tmp_path / "t") == expected[:, :20]).mean() > 0.999  # except for ties


def test_tables_are_taken_from_files(cli: Cli, ran: Cli, copy: Path, tmp_path: Path) -> None:
    order = numpy.roll(nearest(codebook(copy)), 1, axis=1).astype(numpy.uint16)
    numpy.save(tmp_path / "top.npy", order)
    assert cli("neighbours", "--from", "top.npy", "--k", 8, model=copy).returncode == 0
    assert (table(copy / FILE) == order[:, :8]).all()
    ran("neighbours", "--from", copy / FILE, "-o", "again", model=copy)
    assert (tmp_path / "again").read_bytes() == (copy / FILE).read_bytes()


def test_a_table_is_not_replaced_unasked(cli: Cli, refused: Refused, copy: Path) -> None:
    assert cli("neighbours", "--k", 3, model=copy).returncode == 0
    assert "--overwrite" in refused(7, "neighbours", model=copy)
    assert table(copy / FILE).shape == (CODES, 3)
    assert cli("neighbours", "--k", 5, "--overwrite", model=copy).returncode == 0
    assert table(copy / FILE).shape == (CODES, 5)
    assert cli("check", copy).returncode == 0


def test_refusals(refused: Refused, copy: Path, tmp_path: Path) -> None:
    numpy.save(tmp_path / "small.npy", numpy.array([[1], [0]], dtype=numpy.uint16))
    numpy.save(tmp_path / "wide.npy", nearest(codebook(copy)))
    (tmp_path / "page.npy").write_text("<html>")
    for code, arguments, words in (
        (2, ("--k", 0), "--k"),
        (2, ("--metric", "l3"), "l3"),
        (2, ("--metric", "l2", "--from", "small.npy"), "--from"),
        (3, ("--from", "none.npy"), "none.npy"),
        (3, ("--from", "small.npy"), "small.npy"),
        (3, ("--from", "wide.npy"), "uint16"),
        (3, ("--from", "page.npy"), "page.npy"),
        (7, ("-o", "none/t"), "none/t"),
    ):
        assert words in refused(code, "neighbours", *arguments, model=copy)
    before = (copy / "manifest.json").read_bytes()
    edit_manifest(copy, lambda manifest: manifest["files"]["target.pt"].update(bytes=1))
    assert "target.pt" in refused(4, "neighbours", model=copy)
    (copy / "manifest.json").write_bytes(before)
    assert not (copy / FILE).exists()


def test_generating_uses_the_table(cli: Cli, ran: Cli, copy: Path, tmp_path: Path) -> None:
    relaxed = ("--method", "lantern", "--relax-k", 9, "--delta", 1)
    generate = ("generate", "-p", "a", "-b", 4, "-q", *relaxed)

    def generated(name: str, *arguments: object) -> list[bytes]:
        ran(*generate, "-o", f"{name}/", *arguments, model=copy)
        return [pixels(path) for path in sorted((tmp_path / name).iterdir())]

    computed = generated("computed")
    far = nearest(codebook(copy))[:, ::-1].astype(numpy.uint16)
    numpy.save(tmp_path / "far.npy", far)
    assert generated("far", "--neighbours", "far.npy") != computed
    assert cli("neighbours", "--k", 9, model=copy).returncode == 0
    assert generated("stored") == computed
    assert generated("given", "--neighbours", copy / FILE) == computed
