"""SimpleAR and Cosmos' decoder: the networks for the engine against those in plain PyTorch."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from simplear_files import DECODER, SHAPE, TEXT_IDS, decoder_state, random_state
from stepwise import CAUSAL, hidden_by_steps
from torch import Tensor

from models import ops
from models.cosmos.decoder import Cosmos, CosmosConfig
from models.cosmos.folding import fold, inverse_haar
from models.export.image_decoders.cosmos import published_shapes
from models.simplear.config import ImageIds, SimpleARConfig
from models.simplear.network import SimpleAR
from models.simplear.target_module import TargetModule
from models.transformer.by_block import prepared_by_block
from models.vq.image_decoder_module import ImageDecoderModule

CONFIGS = {"grouped": SHAPE, "every head its own": replace(SHAPE, n_kv_head=4)}
CODES = ImageIds(TEXT_IDS, SHAPE.vocab_size - TEXT_IDS)


def make(config: SimpleARConfig, ids: ImageIds = CODES) -> tuple[SimpleAR, TargetModule]:
    ops.load()
    state = random_state(config)
    target = TargetModule(config, ids, config.max_positions, state.__getitem__)
    return SimpleAR(config, state.__getitem__), target


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS.keys())
@torch.inference_mode()
def test_target_is_the_plain_network(config: SimpleARConfig) -> None:
    """A prompt, then ids one by one, of text and of codes."""
    plain, target = make(config)
    ids = torch.randint(config.vocab_size, (2, 9), generator=torch.Generator().manual_seed(2))
    target, hidden = hidden_by_steps(target, config, ids)
    expected = plain.trunk(ids)[-1]
    torch.testing.assert_close(hidden, expected, atol=1e-5, rtol=1e-5)
    logits = plain.logits(expected)[..., TEXT_IDS:]
    torch.testing.assert_close(target.logits(hidden), logits, atol=1e-4, rtol=1e-5)


@torch.inference_mode()
def test_biases_matter() -> None:
    state = random_state(SHAPE)
    ids = torch.arange(6)[None]
    hidden = SimpleAR(SHAPE, state.__getitem__).trunk(ids)[-1]
    for part, rows in (("queries", slice(0, 32)), ("values", slice(48, 64))):
        other = {name: tensor.clone() for name, tensor in state.items()}
        other["layers.0.bqkv"][rows] = 0
        changed = SimpleAR(SHAPE, other.__getitem__).trunk(ids)[-1]
        assert (changed - hidden).abs().max() > 1e-2, part


@torch.inference_mode()
def test_block_by_block() -> None:
    _, target = make(SHAPE, replace(CODES, all=True))
    partial = prepared_by_block(target, torch.empty(0))
    x = torch.randn(1, 4, SHAPE.dim)
    cache = torch.zeros(SHAPE.n_layer, 2, 1, SHAPE.n_kv_head, 4, SHAPE.head_dim)
    arguments = (torch.arange(4)[None], CAUSAL, torch.zeros(1, dtype=torch.int64))
    got = partial(x, *arguments, cache.clone())[0]
    target.prepare(torch.empty(0))
    assert torch.equal(got, target(x, *arguments, cache.clone())[0])
    assert target.logits(got).shape[-1] == SHAPE.vocab_size


class Video:
    """The published decoder run as it is written: on frames, two more of which stand in front."""

    def __init__(self, state: dict[str, Tensor], config: CosmosConfig) -> None:
        self.state = {name: tensor.double() for name, tensor in state.items()}
        self.config = config

    def conv(self, name: str, x: Tensor) -> Tensor:
        """x [B,C,T,h,w]; the first frame is repeated in front, edges are padded with zeros."""
        weight, bias = self.state[f"{name}.conv3d.weight"], self.state[f"{name}.conv3d.bias"]
        front = x[:, :, :1].expand(-1, -1, weight.shape[2] - 1, -1, -1)
        edge = weight.shape[3] // 2
        return F.conv3d(torch.cat([front, x], 2), weight, bias, padding=(0, edge, edge))

    def pair(self, name: str, x: Tensor) -> Tensor:
        return self.conv(f"{name}.1", self.conv(f"{name}.0", x))

    def norm(self, name: str, x: Tensor) -> Tensor:
        weights = (self.state[f"{name}.norm.weight"], self.state[f"{name}.norm.bias"])
        return F.group_norm(x, 1, *weights, 1e-6)

    def block(self, name: str, x: Tensor) -> Tensor:
        h = x
        for number in ("1", "2"):
            h = F.silu(self.norm(f"{name}.norm{number}", h))
            h = self.pair(f"{name}.conv{number}", h)
        short = f"{name}.nin_shortcut"
        return h + (self.conv(short, x) if f"{short}.conv3d.weight" in self.state else x)

    def attention(self, name: str, x: Tensor, rows: str) -> Tensor:
        """Over the positions of a frame (hw) or over the frames of a position (t)."""
        h = self.norm(f"{name}.norm", x)
        q, k, v = (self.conv(f"{name}.{part}", h) for part in "qkv")

        def flat(y: Tensor) -> Tensor:
            y = y.permute(0, 2, 3, 4, 1)
            return y.flatten(2, 3) if rows == "hw" else y.flatten(2, 3).transpose(1, 2)

        weights = (flat(q) @ flat(k).transpose(-1, -2) * q.shape[1] ** -0.5).softmax(-1)
        out = weights @ flat(v)
        out = out if rows == "hw" else out.transpose(1, 2)
        out = out.unflatten(2, x.shape[3:]).permute(0, 4, 1, 2, 3)
        return x + self.conv(f"{name}.proj_out", out)

    def upsample(self, name: str, x: Tensor, temporal: bool) -> Tensor:
        if temporal:
            x = x + self.conv(f"{name}.conv1", x)
        x = x.repeat_interleave(2, 3).repeat_interleave(2, 4)
        x = x + self.conv(f"{name}.conv2", x)
        return self.conv(f"{name}.conv3", x)

    def decode(self, x: Tensor) -> Tensor:
        """Codes [B,6,1,h,w] -> rgb [B,3,16h,16w]."""
        x = self.conv("post_quant_conv", x.double())
        x = self.pair("decoder.conv_in", x)
        x = self.block("decoder.mid.block_1", x)
        x = self.attention("decoder.mid.attn_1.0", x, "hw")
        x = self.attention("decoder.mid.attn_1.1", x, "t")
        x = self.block("decoder.mid.block_2", x)
        for level in reversed(range(len(self.config.widths))):
            for block in range(self.config.num_res_blocks + 1):
                x = self.block(f"decoder.up.{level}.block.{block}", x)
            if level > 0:
                name = f"decoder.up.{level}.upsample"
                x = self.upsample(name, x, level in self.config.temporal_levels)
        x = self.pair("decoder.conv_out", F.silu(self.norm("decoder.norm_out", x)))
        return torch.stack([inverse_haar(inverse_haar(frame[:, 0])) for frame in x])


@pytest.mark.parametrize(
    "config",
    [DECODER, CosmosConfig((4, 4, 8), 0, 3), CosmosConfig((6, 4, 10), 2, 5)],
    ids=["narrow", "one block a level", "another"],
)
@torch.inference_mode()
def test_folded_decoder_is_the_video_network(config: CosmosConfig) -> None:
    state = decoder_state(config)
    model = Cosmos(config)
    folded = fold(state, config)
    model.load_state_dict(folded | {"quantize.embedding.weight": model.quantize.table()})
    random = torch.Generator().manual_seed(5)
    codes = torch.randint(config.codes, (2, 3, 5), generator=random)
    expected = Video(state, config).decode(model.quantize.lookup(codes)[:, :, None]).float()
    torch.testing.assert_close(model.decode_code(codes), expected, atol=2e-5, rtol=1e-4)
    module = torch.jit.script(ImageDecoderModule(model))
    module.prepare(torch.empty(0))
    torch.testing.assert_close(module.decode(codes), expected, atol=2e-5, rtol=1e-4)


def test_the_published_decoder() -> None:
    """Its size gives the default shape: 66,148,080 parameters."""
    shapes = published_shapes(CosmosConfig())
    assert sum(torch.Size(shape).numel() for shape in shapes.values()) == 66_148_080
    assert len(shapes) == 178 and CosmosConfig().downsample == 16
