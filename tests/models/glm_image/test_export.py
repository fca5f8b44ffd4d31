"""The GLM-Image exporter: what a bundle holds, how heads turn, what is refused."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from export_run import ExportRun, refused
from safetensors.torch import load_file, save_file
from torch import Tensor

from models.archive import archived_tensor
from models.export.__main__ import main
from models.export.checkpoint import ExportError
from models.export.glm_image.bundle import PUBLISHED_CODES, preview_sides, size_grid
from models.glm_image.config import GlmImageConfig
from models.glm_image.places import places, rotary_table

MODEL = Path(__file__).parents[2] / "golden/cases/glm_image/glm_image_generate_tiny/model"
CODES = 24
LAYER = "model.language_model.layers.0."


class Files(ExportRun):
    """A copy of the recorded folder, to be changed, and a call of the exporter."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.model, self.out = folder, folder / "model", folder / "bundle"
        shutil.copytree(MODEL, self.model)
        self.network, self.processor = (
            self.model / "vision_language_encoder",
            self.model / "processor",
        )
        self.config = folder / "settings.json"
        self.set(sizes=["160x96"], text_length=100)

    def set(self, **values: Any) -> None:
        self.config.write_text(json.dumps(values))

    def export(self, *words: object) -> int:
        command = ["glm-image", "--model", self.model, "--config", self.config, "--out", self.out]
        return main([*map(str, command), *map(str, words)])

    def change(self, file: Path, part: str | None = None, **values: Any) -> None:
        content = json.loads(file.read_text(encoding="utf-8"))
        (content[part] if part else content).update(values)
        file.write_text(json.dumps(content), encoding="utf-8")

    def state(self) -> dict[str, Tensor]:
        return load_file(self.network / "model.safetensors")

    def save(self, state: dict[str, Tensor]) -> None:
        save_file(state, self.network / "model.safetensors")


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


def test_whole_bundle(files: Files) -> None:
    assert files.export("--dtype", "bf16") == 0
    manifest = files.manifest()
    assert manifest["family"] == "glm-image" and manifest["licence"] == "MIT"
    assert set(manifest["modules"]) == {"target"} and "decoder" not in manifest
    prompt = manifest["prompt"]
    assert prompt["text"] == (
        "{prompt}<sop>{rows} {columns}<eop><sop>{preview_rows} {preview_columns}<eop>"
    )
    assert (prompt["length"], prompt["align"], prompt["suffix"]) == (101, "end", [CODES])
    assert manifest["tokens"]["first_image_id"] == 0
    assert manifest["tokens"]["codebook_size"] == manifest["target"]["head"] == CODES
    (grid,) = manifest["grids"]
    assert (grid["rows"], grid["columns"]) == (3, 5)
    assert grid["preview"] == {"rows": 12, "columns": 20}
    assert manifest["cache"]["max_length"] == 101 + 12 * 20 + 3 * 5
    assert manifest["sampling"] == {
        "cfg_scale": 1.0, "temperature": 0.9, "top_k": 50, "top_p": 0.75, "order": "ar",
    }  # fmt: skip
    head = files.state()["lm_head.weight"][:CODES]
    assert torch.equal(archived_tensor(files.out / "target.pt", "head"), head)


def test_the_network_alone(files: Files) -> None:
    """The tokenizer lies beside it, and the defaults of generating are the published ones."""
    (files.network / "generation_config.json").unlink()
    files.model = files.network
    assert files.export() == 0
    sampling = files.manifest()["sampling"]
    assert (sampling["temperature"], sampling["top_p"], sampling["top_k"]) == (0.9, 0.75, 50)


def test_defaults_that_are_left_out_are_said(
    files: Files, capsys: pytest.CaptureFixture[str]
) -> None:
    rotations = {"partial_rotary_factor": 0.5, "mrope_section": [1, 2, 1]}
    files.change(files.network / "config.json", "text_config", rope_parameters=rotations)
    assert files.export() == 0
    said = capsys.readouterr().out
    assert "text_config leaves out what equals the defaults: rope_theta 10000.0\n" in said
    files.change(files.network / "config.json", image_start_token_id=None)
    assert files.export("--overwrite") == 4
    assert "the defaults: image_start_token_id 16384" in capsys.readouterr().out


def test_defaults_of_generating(files: Files) -> None:
    """transformers samples at temperature 1 from the 50 best where the file does not say."""
    (files.network / "generation_config.json").write_text("{}")
    assert files.export() == 0
    sampling = files.manifest()["sampling"]
    assert (sampling["temperature"], sampling["top_p"], sampling["top_k"]) == (1.0, 1.0, 50)


def test_places_of_two_images() -> None:
    """Time stays, rows and columns go on from where an image begins; the next begins behind its longer side."""
    found = places(2, [(1, 2), (2, 1)], 8).T.tolist()
    assert found == [[0, 0, 0], [1, 1, 1],  # the prompt
                     [2, 2, 2], [2, 2, 3],
                     [4, 4, 4], [4, 5, 4],
                     [6, 6, 6], [7, 7, 7]]  # fmt: skip


def test_rotations_by_axis() -> None:
    """Of eight features four turn, the first pair by time and row in turn; the others stay."""
    config = GlmImageConfig(dim=8, n_head=1, n_kv_head=1, ffn_dim=8, n_layer=1, vocab_size=9,
                            turned_share=0.5, sections=(1, 1), rope_base=100.0)  # fmt: skip
    table = rotary_table(config, 1, [(2, 1)], 3)
    angles = torch.tensor([[0.0, 0.0], [1.0, 0.1], [1.0, 0.2]])
    assert torch.allclose(table[:, :2, 0], angles.cos())
    assert torch.allclose(table[:, :2, 1], angles.sin())
    assert torch.equal(table[:, 2:], torch.tensor([1.0, 0.0]).expand(3, 2, 2))


@pytest.mark.parametrize(
    ("sides", "preview"), [((32, 32), (16, 16)), ((36, 24), (19, 13)), ((40, 48), (14, 17))]
)
def test_previews(sides: tuple[int, int], preview: tuple[int, int]) -> None:
    """As transformers' processor computes them."""
    assert preview_sides(*sides) == preview


@pytest.mark.parametrize(
    ("size", "fits"),
    [((1024, 1024), True), ((768, 1152), True), ((2048, 2048), True), ((512, 512), False),
     ((2080, 2048), False), ((4096, 512), False)],
)  # fmt: skip
def test_sizes_that_were_trained(size: tuple[int, int], fits: bool) -> None:
    if fits:
        assert size_grid(*size, PUBLISHED_CODES)["rows"] == size[1] // 32
        return
    with pytest.raises(ExportError, match="the model was trained on 864 to 4096"):
        size_grid(*size, PUBLISHED_CODES)


ROPE = {"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.5}
CHANGES: dict[str, tuple[str, dict[str, Any], str]] = {
    "model_type": ("", {"model_type": "glm4v"}, "model_type is glm4v, expected glm_image"),
    "tied": ("", {"tie_word_embeddings": True}, "tie_word_embeddings is true"),
    "bias": ("text_config", {"attention_bias": False}, "attention_bias is false"),
    "scaled": ("text_config", {"rope_parameters": {"rope_type": "linear"}}, "rope_type is linear"),
    "sections": ("text_config", {"rope_parameters": {**ROPE, "mrope_section": [1, 2]}}, "text_config.partial_rotary_factor, "),
    "no_object": ("text_config", {"rope_parameters": []}, "rope_parameters is [], expected an object"),
    "no_section": ("text_config", {"rope_parameters": {**ROPE, "mrope_section": [4, 0]}}, "mrope_section is"),
    "twice": ("text_config", {"rope_theta": 5.0}, "expected one value"),
    "codes": ("vq_config", {"num_embeddings": 500}, "500 codes, 32 ids of images"),
    "quantised": ("", {"quantization_config": {"quant_method": "awq"}}, "quantised (awq)"),
    "start": ("", {"image_start_token_id": 25}, "has id 24, expected image_start_token_id 25"),
}  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
def test_contradictions(files: Files, capsys: pytest.CaptureFixture[str], change: str) -> None:
    part, values, message = CHANGES[change]
    files.change(files.network / "config.json", part or None, **values)
    assert message in refused(files, capsys, 4)


def test_tensors(files: Files, capsys: pytest.CaptureFixture[str]) -> None:
    """Missing, unknown and misshapen ones; what reads images is left out."""
    state = files.state()
    norm, joined = f"{LAYER}post_mlp_layernorm.weight", f"{LAYER}mlp.gate_up_proj.weight"
    for name, tensor, message in (
        (norm, None, f"missing keys: {norm}"),
        (joined, torch.ones(40, 32), "has shape [40, 32], expected [80, 32]"),
        ("model.language_model.odd", torch.ones(2), "unexpected keys: model.language_model.odd"),
    ):
        changed = {k: v for k, v in state.items() if k != name}
        files.save(changed | ({} if tensor is None else {name: tensor}))
        assert message in refused(files, capsys, 4)
    files.save(state | {"model.visual.odd": torch.ones(2), "model.vqmodel.odd": torch.ones(2)})
    assert files.export() == 0


def test_one_size(files: Files, capsys: pytest.CaptureFixture[str]) -> None:
    files.set(sizes=["160x96", "96x96"])
    assert "got sizes 160x96, 96x96, expected one" in refused(files, capsys, 2)
    files.set(sizes=["160x90"])
    assert "expected multiples of 32 pixels" in refused(files, capsys, 2)


def test_positions(files: Files, capsys: pytest.CaptureFixture[str]) -> None:
    """An image takes the positions of its longer side."""
    files.set(sizes=["160x96"], text_length=512 - 20 - 5)
    assert "do not fit the model's 512 positions" in refused(files, capsys, 2)
    files.set(sizes=["160x96"], text_length=512 - 1 - 20 - 5)
    assert files.export() == 0


def test_a_tokenizer_without_tags(files: Files, capsys: pytest.CaptureFixture[str]) -> None:
    file = files.processor / "tokenizer_config.json"
    files.change(file, "extra_special_tokens", grid_eos_token="<none>")
    assert "no added token <none>" in refused(files, capsys, 4)
    (files.processor / "tokenizer.json").unlink()
    assert "no tokenizer, expected processor/tokenizer.json" in refused(files, capsys, 4)
