"""The plain image tokenizer, the scripted decoder and the scripted encoder."""

from __future__ import annotations

import pytest
import torch
from scripted_decoder import check_against_plain, check_encoder_against_plain

from models.llamagen.config import VQConfig
from models.llamagen.vq import VQModel
from models.vq.blocks import Upsample
from models.vq.image_decoder_module import DoublingConv, ImageDecoderModule

PUBLISHED = {
    "VQ-16": VQConfig(),
    "VQ-8": VQConfig(encoder_ch_mult=(1, 2, 2, 4), decoder_ch_mult=(1, 2, 2, 4)),
}
TINY = VQConfig(
    ch=32,
    encoder_ch_mult=(1, 2),
    decoder_ch_mult=(1, 2),
    num_res_blocks=1,
    z_channels=32,
    codebook_size=20,
)


# Published numbers of tensors and parameters, the training buffer codebook_used apart.
@pytest.mark.parametrize(
    ("name", "tensors", "parameters"),
    [("VQ-16", 343, 71_883_403), ("VQ-8", 299, 70_109_835)],
)
def test_published_tokenizers(name: str, tensors: int, parameters: int) -> None:
    with torch.device("meta"):
        model = VQModel(PUBLISHED[name])
    assert len(model.state_dict()) == tensors
    assert sum(p.numel() for p in model.parameters()) == parameters


def test_shortcuts_only_where_the_width_changes() -> None:
    with torch.device("meta"):
        keys = VQModel(PUBLISHED["VQ-16"]).state_dict()
    found = {key.rsplit(".", 2)[0] for key in keys if "nin_shortcut" in key}
    assert found == {
        "encoder.conv_blocks.2.res.0",
        "encoder.conv_blocks.4.res.0",
        "decoder.conv_blocks.1.res.0",
        "decoder.conv_blocks.3.res.0",
    }


def test_codes_survive_a_round_trip_through_the_codebook() -> None:
    torch.manual_seed(0)
    model = VQModel(TINY).eval()
    codes = torch.randint(20, (2, 3, 4))
    rows = model.quantize.lookup(codes)
    torch.testing.assert_close(rows.norm(dim=1), torch.ones(2, 3, 4))
    assert torch.equal(model.quantize.indices(rows * 3.0), codes)
    assert model.encode(torch.rand(1, 3, 8, 12)).shape == (1, 4, 6)


def test_doubling_convolution_is_upsampling_then_convolution() -> None:
    torch.manual_seed(0)
    block = Upsample(6)
    folded = DoublingConv(block)
    folded.prepare(torch.empty(0))
    x = torch.randn(2, 6, 3, 5)
    torch.testing.assert_close(folded(x), block(x), atol=1e-5, rtol=1e-5)
    folded.prepare(torch.empty(0))  # a second time changes nothing
    torch.testing.assert_close(folded(x), block(x), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("blocks", [0, 1])
def test_scripted_decoder_equals_plain(blocks: int) -> None:
    torch.manual_seed(0)
    config = VQConfig(**{**TINY.__dict__, "num_res_blocks": blocks})
    model = VQModel(config, encoder=False).eval()
    check_against_plain(model)


def test_half_precision_storage_decodes_in_fp32() -> None:
    torch.manual_seed(0)
    model = VQModel(TINY, encoder=False).eval()
    scripted = torch.jit.script(ImageDecoderModule(model).to(torch.float16).eval())
    scripted.prepare(torch.empty(0))
    codes = torch.randint(20, (1, 2, 2))
    with torch.inference_mode():
        image = scripted.decode(codes)
        assert image.dtype == torch.float32
        torch.testing.assert_close(image, model.decode_code(codes), atol=1e-2, rtol=0)


def test_scripted_encoder_equals_plain() -> None:
    torch.manual_seed(0)
    check_encoder_against_plain(VQModel(TINY).eval(), 2)
