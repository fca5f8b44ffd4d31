"""Drafters of bundles whose prompts are tokens, and how a target's head is read."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import pytest
import torch
from eagle_files import CHAMELEON, LLAMAGEN, Files, published_settings, random_drafter

from models.archive import archived_tensor
from models.export.checkpoint import ExportError
from models.export.drafters.files import read_drafter

PROMPT = {
    "kind": "tokens", "length": 6, "align": "start", "prefix": [0], "text": "{prompt}",
    "suffix": [], "unconditional": [0],
}  # fmt: skip


def manifest(files: Files) -> dict[str, Any]:
    return {**files.manifest(), "prompt": PROMPT}


@pytest.mark.parametrize("named", [True, False])
def test_published(files: Files, named: bool) -> None:
    """The prompts tell the kind of drafter, whatever config.json calls the model."""
    settings = published_settings(CHAMELEON)
    if not named:
        del settings["model_type"]
    drafter = random_drafter(CHAMELEON)
    files.save(settings, drafter.state_dict())
    config, state = read_drafter(files.drafter, manifest(files))
    assert (config.rotary, config.padding, config.fc_bias) == ("line", False, True)
    assert config.input_norm and config.qk_norm and config.norm_eps == 1e-5
    assert config.max_length == files.manifest()["cache"]["max_length"]
    assert all(torch.equal(state[name], value) for name, value in drafter.state_dict().items())


def test_refused(files: Files) -> None:
    files.save(asdict(LLAMAGEN), random_drafter(LLAMAGEN).state_dict())
    with pytest.raises(ExportError, match="rotary is grid, the bundle's prompts of tokens need"):
        read_drafter(files.drafter, manifest(files))
    settings = {**published_settings(CHAMELEON), "rope_scaling": {"factor": 2}}
    files.save(settings, random_drafter(CHAMELEON).state_dict())
    with pytest.raises(ExportError, match='rope_scaling is {"factor": 2}, expected rotations'):
        read_drafter(files.drafter, manifest(files))


def test_archived_tensor(files: Files, capsys: pytest.CaptureFixture[str]) -> None:
    archive = files.bundle / "target.pt"
    buffers = dict(torch.jit.load(archive).named_buffers(recurse=False))
    assert "head" in buffers
    for name, expected in buffers.items():
        found = archived_tensor(archive, name)
        assert found is not None and found.dtype == expected.dtype
        assert torch.equal(found, expected), name
    assert archived_tensor(archive, "nothing") is archived_tensor(archive, "dim") is None
    archive.write_bytes(archive.read_bytes()[:1000])
    files.save(published_settings(LLAMAGEN), random_drafter(LLAMAGEN).state_dict())
    assert files.attach() == 4
    error = capsys.readouterr().err
    assert error.startswith("error: target.pt: no TorchScript archive: ") and error.count("\n") == 1
