"""The demo's image encoder: its training on a handful of images, and its form in a bundle."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from models import ops
from models.demo.encoder_module import DemoEncoderModule
from models.demo.export import add_encoder
from models.demo.training import generated, vq_train
from models.demo.training.bundled import load_decoder
from models.demo.training.encoder import IMAGES, EncoderTraining
from models.demo.training.vq_model import ImageEncoder


@pytest.fixture(scope="module")
def work(demo_bundle: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of 40 images that the decoder generated, the first ones held out."""
    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("encoder")
    codes = torch.randint(1024, (40, 16, 16), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        rgb = load_decoder(demo_bundle).decode_code(codes[:2]).clamp(-1, 1)
    shown = ((rgb + 1) * 127.5).round().byte().permute(0, 2, 3, 1).numpy()
    (folder / "generated" / "00000").mkdir(parents=True)
    for number in range(len(codes)):
        codes[number] = codes[number % 2]
        Image.fromarray(shown[number % 2]).save(folder / f"generated/00000/{number:04d}.png")
    images = [{"rows": 16, "columns": 16, "codes": one.flatten().tolist()} for one in codes]
    (folder / "generated" / "codes-00000.json").write_text(json.dumps({"images": images}))
    return folder


def test_the_decoder_of_a_bundle_is_its_module(demo_bundle: Path) -> None:
    ops.load()
    module = torch.jit.load(str(demo_bundle / "image_decoder.pt"))
    module.prepare(torch.empty(0))
    codes = torch.randint(1024, (1, 16, 16), generator=torch.Generator().manual_seed(1))
    network = load_decoder(demo_bundle)
    with torch.no_grad():
        assert torch.allclose(network.decode_code(codes), module.decode(codes), atol=2e-3)
    assert not any(weight.requires_grad for weight in network.parameters())


def test_held_out_images_are_in_no_batch(work: Path) -> None:
    images = generated.Generated(work / "generated", seed=0)
    images.codes = torch.arange(40)[:, None, None].expand(40, 16, 16)
    seen = torch.cat([images.batch(8)[1][:, 0, 0] for _ in range(20)])
    assert set(seen.tolist()) == set(range(generated.HELD_OUT, 40))
    rgb, codes = images.held_out()
    assert codes[:, 0, 0].tolist() == list(range(generated.HELD_OUT)) and rgb.shape[1:] == (
        3,
        256,
        256,
    )


def test_codes_are_learnt_and_continue_from_their_checkpoint(
    work: Path, demo_bundle: Path, tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(work, tmp_path / "work"))
    training = EncoderTraining(folder, demo_bundle, seed=1)
    vq_train.set_rates(training.optims, 1.0)
    rgb, codes = next(training.batches(seed=1, workers=0))
    assert len(rgb) == IMAGES and training.reconstruct(rgb[:1]).shape == rgb[:1].shape
    losses = [training.update(rgb, codes) for _ in range(12)]
    assert losses[-1] < 0.7 * losses[0]
    training.save(spent=3.0)
    resumed = EncoderTraining(folder, demo_bundle, seed=1)
    assert (resumed.step, resumed.spent) == (12, 3.0)
    assert torch.equal(resumed.encode(rgb), training.encode(rgb))


def test_the_module_is_the_network(demo_bundle: Path) -> None:
    torch.manual_seed(0)
    vq = load_decoder(demo_bundle)
    vq.encoder, vq.quant_conv = ImageEncoder().eval(), torch.nn.Identity()
    module = torch.jit.script(DemoEncoderModule(vq))
    module.prepare(torch.empty(0))
    rgb = torch.rand(2, 3, 256, 256) * 2 - 1
    with torch.no_grad():
        latents = module.latents(rgb)
        assert torch.allclose(latents, vq.latents(rgb), atol=1e-5)
        assert torch.equal(module.nearest(latents), vq.quantize.indices(latents))


def test_the_encoder_joins_a_bundle(bare_bundle: Path, tmp_path: Path) -> None:
    """Other files keep their bytes, other records stay; a second encoder takes the first one's place."""
    bundle = Path(shutil.copytree(bare_bundle, tmp_path / "bundle"))
    torch.manual_seed(0)
    for _ in range(2):
        torch.save(ImageEncoder().state_dict(), tmp_path / "encoder.pt")
        add_encoder(tmp_path, bundle)
    before, after = (json.loads((b / "manifest.json").read_text()) for b in (bare_bundle, bundle))
    assert set(after["files"]) - set(before["files"]) == {"image_encoder.pt"}
    changed = {name for name in before["files"] if after["files"][name] != before["files"][name]}
    assert changed == {"golden.safetensors"}
    assert after["modules"]["image_encoder"] == {"file": "image_encoder.pt", "dtype": "float16"}
    records = after["golden"]["records"]
    assert records[:-2] == before["golden"]["records"]
    assert [record["method"] for record in records[-2:]] == ["latents", "nearest"]


def test_a_stage_generates_what_is_missing(
    demo_bundle: Path, lamplighter: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(generated, "SHARD", 2)
    generated.generate_images(demo_bundle, tmp_path, 1, lamplighter)
    first = (tmp_path / "codes-00000.json").read_bytes()
    generated.generate_images(demo_bundle, tmp_path, 2, lamplighter)
    assert (tmp_path / "codes-00000.json").read_bytes() == first
    images = generated.Generated(tmp_path, seed=0)
    assert len(images.codes) == 4
    rgb, codes = images.rows(np.arange(2, 4))
    with torch.no_grad():
        shown = load_decoder(demo_bundle).decode_code(codes).clamp(-1, 1)
    assert (shown - rgb).abs().max() < 0.01
