"""The recorded greedy image of Lumina-mGPT through the compiled loop, with and without drafts."""

from __future__ import annotations

import json
from pathlib import Path

import golden_engine as engine
import pytest
from golden_cases import Case
from safetensors.torch import load_file

from tests.e2e.families import Shape, Weights, add_drafter

KINDS = ("lumina_mgpt",)

METHODS: tuple[dict[str, str], ...] = (
    {"method": "ar"},
    {"method": "eagle", "tree": "chain-8"},
    {"method": "eagle", "tree": "lantern-26"},
    {"method": "eagle-2"},
)


@pytest.fixture(scope="module")
def bundle(case: Case, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With a drafter that guesses now and then."""
    if not case.has("greedy_ids"):
        pytest.skip("no recorded image")
    folder = tmp_path_factory.mktemp("lumina")
    grid, dims = case.info["greedy"], case.info["dims"]
    size = f"{32 * grid['width_grids']}x{32 * grid['height_grids']}"
    words = ("--sizes", size)
    out = engine.export(folder / "bundle", "lumina-mgpt", {}, *words, model=case.folder)
    shape = Shape(dims["hidden_size"], dims["heads"], dims["kv_heads"], dims["ffn_size"])
    embeddings = load_file(case.folder / "model.safetensors")["model.embed_tokens.weight"]
    add_drafter(folder, out, Weights(shape, 6), embeddings, "part")
    return out


def test_greedy_image(case: Case, bundle: Path, tmp_path: Path) -> None:
    (grid,) = engine.manifest(bundle)["grids"]
    header = len(grid["before"])
    prompt = case.long("greedy_prompt_ids").tolist()
    assert prompt[-header:] == grid["before"]
    runs = [
        {"width": grid["width"], "height": grid["height"], "ids": prompt[:-header],
         "unconditional": [], "cfg_scale": case.info["sampling"]["cfg_scale"], "temperature": 0,
         **method}
        for method in METHODS
    ]  # fmt: skip
    engine.run(
        engine.BUILD / "golden_layout", bundle, tmp_path / "out.safetensors", stdin=json.dumps(runs)
    )
    found = load_file(tmp_path / "out.safetensors")
    recorded = case.long("greedy_ids").tolist()
    for number, method in enumerate(METHODS):
        codes = found[f"{number}.codes"].view(grid["rows"], grid["columns"]) + 4
        ids = [id for row in codes.tolist() for id in (*row, *grid["row_end"])]
        assert [*ids, grid["after"][0]] == recorded, method
