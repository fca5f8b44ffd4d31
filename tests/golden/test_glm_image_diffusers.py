"""The script on GLM-Image's page with a small random second stage; skipped without diffusers.

VENV/bin/python -m pytest tests/golden/test_glm_image_diffusers.py   # VENV as in record_glm_image.py, and diffusers 0.42
"""

from __future__ import annotations

from pathlib import Path

import golden_codes
import golden_engine as engine
import pytest
import torch
from golden_cases import FOLDER, Case
from PIL import Image

diffusers = pytest.importorskip("diffusers")
transformers = pytest.importorskip("transformers")

PAGE = engine.ROOT / "models" / "families" / "glm-image.md"
CASE = Case("families/glm_image_generate", FOLDER / "glm_image" / "glm_image_generate_tiny")


def write_pipeline(folder: Path, codes: int) -> None:
    """The second stage: all its parts with few weights."""
    torch.manual_seed(0)
    transformer = diffusers.GlmImageTransformer2DModel(
        in_channels=4, out_channels=4, num_layers=2, attention_head_dim=16, num_attention_heads=2,
        text_embed_dim=32, time_embed_dim=16, condition_dim=8, prior_vq_quantizer_codebook_size=codes,
    )  # fmt: skip
    levels = 4
    vae = diffusers.AutoencoderKL(
        latent_channels=4, block_out_channels=(8,) * levels, norm_num_groups=4, use_quant_conv=False,
        use_post_quant_conv=False, down_block_types=("DownEncoderBlock2D",) * levels,
        up_block_types=("UpDecoderBlock2D",) * levels,
    )  # fmt: skip
    vae.register_to_config(latents_mean=[0.0] * 4, latents_std=[1.0] * 4)
    text = transformers.T5Config(
        vocab_size=384, d_model=32, d_kv=8, d_ff=32, num_layers=1, num_heads=4, feed_forward_proj="gated-gelu"
    )  # fmt: skip
    processor = transformers.GlmImageProcessor(
        transformers.GlmImageImageProcessorPil(),
        transformers.AutoTokenizer.from_pretrained(CASE.folder / "model" / "processor"),
    )
    scheduler = diffusers.FlowMatchEulerDiscreteScheduler(use_dynamic_shifting=True)
    diffusers.GlmImagePipeline(
        transformers.ByT5Tokenizer(), processor, transformers.T5EncoderModel(text), None, vae, transformer,
        scheduler,
    ).save_pretrained(folder)  # fmt: skip


def page_script(pipeline: Path) -> str:
    """The page's lines, on the CPU and with this pipeline."""
    text = PAGE.read_text(encoding="utf-8")
    block = text[text.index("    import torch") :].split("\n\n## ")[0]
    script = "\n".join(line.removeprefix("    ") for line in block.splitlines())
    for old, new in (("zai-org/GLM-Image", str(pipeline)), ('"cuda"', '"cpu"'), (".cuda()", "")):
        assert old in script
        script = script.replace(old, new)
    return script


@pytest.mark.filterwarnings("error:.*dtype.*:FutureWarning")
def test_the_script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bundle = golden_codes.export(CASE, tmp_path)
    write_pipeline(tmp_path / "pipeline", CASE.info["shape"]["codes"])
    monkeypatch.chdir(tmp_path)
    engine.generate(bundle, "-p", "a corgi", "--save-codes", tmp_path / "corgi.safetensors")
    names: dict[str, object] = {}
    exec(page_script(tmp_path / "pipeline"), names)  # noqa: S102, the page's own text
    rows, columns = CASE.info["shape"]["grid"]
    with Image.open("corgi.png") as image:
        assert image.size == (32 * columns, 32 * rows)
    codes, prior = names["codes"], names["prior"]
    assert isinstance(codes, torch.Tensor) and isinstance(prior, torch.Tensor)
    pipeline = diffusers.GlmImagePipeline
    expected = pipeline._upsample_token_ids(codes.reshape(1, -1), rows, columns)
    assert torch.equal(prior, expected)
