"""Cosmos' encoder in bundles of SimpleAR: its codes, and files that are none."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from export_run import refused
from simplear_files import (
    DECODER,
    SHAPE,
    TEXT_IDS,
    Files,
    random_state,
    random_tensors,
    save_decoder,
)

from models.cosmos.decoder import fsq_table
from models.export.__main__ import main
from models.export.image_decoders.cosmos import encoder_shapes, load_cosmos

STATE = random_tensors(encoder_shapes(DECODER, 4), seed=5)


@pytest.fixture
def files(tmp_path: Path) -> Files:
    files = Files(tmp_path, random_state(SHAPE))
    save_decoder(tmp_path / "encoder.jit", STATE)
    return files


def test_scripted_encoder_equals_plain(files: Files) -> None:
    assert files.export("--encoder", files.folder / "encoder.jit") == 0
    assert files.manifest()["modules"]["image_encoder"]["dtype"] == "float32"
    scripted = torch.jit.load(str(files.out / "image_encoder.pt"))
    scripted.prepare(torch.empty(0))
    plain = load_cosmos(files.decoder, encoder=files.folder / "encoder.jit")
    rgb = torch.rand(2, 3, 48, 80, generator=torch.Generator().manual_seed(1)) * 2 - 1
    with torch.inference_mode():
        latents = scripted.latents(rgb)
        torch.testing.assert_close(latents, plain.latents(rgb), atol=1e-4, rtol=0)
        assert latents.shape == (2, 6, 3, 5)
        assert torch.equal(scripted.nearest(latents), plain.quantize.indices(latents))


@pytest.mark.parametrize(("words", "text"), [((), 0), (("--full-head",), TEXT_IDS)])
def test_a_code_is_nearest_to_itself(files: Files, words: tuple[str, ...], text: int) -> None:
    """With all ids in the head, codes stand behind the ids of text."""
    assert files.export("--encoder", files.folder / "encoder.jit", *words) == 0
    encoder = torch.jit.load(str(files.out / "image_encoder.pt"))
    encoder.prepare(torch.empty(0))
    codes = torch.arange(64000).view(1, 250, 256)
    rows = fsq_table(DECODER.levels, 64000)[codes].permute(0, 3, 1, 2)
    assert torch.equal(encoder.nearest(rows), codes + text)


def test_files_that_are_no_encoder(files: Files, capsys: pytest.CaptureFixture[str]) -> None:
    file = files.folder / "encoder.jit"
    message = "encoder.conv_in.0.conv3d.weight"
    assert message in refused(files, capsys, 4, "--encoder", files.decoder)
    name = "encoder.down.0.downsample.conv2.conv3d.bias"
    save_decoder(file, {k: v for k, v in STATE.items() if k != name})
    assert f"missing keys: {name}" in refused(files, capsys, 4, "--encoder", file)
    save_decoder(file, STATE | {name: torch.zeros(9)})
    assert "has shape [9], expected [4]" in refused(files, capsys, 4, "--encoder", file)
    file.unlink()
    assert "encoder.jit: no such file" in refused(files, capsys, 4, "--encoder", file)
    words = ("simplear", "--model", files.model, "--encoder", file, "--out", files.out)
    assert main([str(word) for word in words]) == 2
    assert capsys.readouterr().err == "error: --encoder: give --decoder, too\n"
