"""The published network of videos as one of images, with equal results for one frame.

Behind one frame stand copies of it: a kernel over time is the sum of its weights, attention over
time is its values' projection, and doubling time does nothing but its residual convolution. What
then is linear in a row is one convolution: 3x3 and 1x1 of a factorised pair, doubling's residuals,
the encoder's means of 2x2 pixels beside a convolution, and at both ends the wavelets (Haar, twice).
Products are made in fp64.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from .decoder import PATCH, RGB, CosmosConfig

State = Mapping[str, Tensor]
Conv = tuple[Tensor, Tensor]  # weight fp64 [O,I,k,k], bias [O]


def conv_of(state: State, name: str) -> Conv:
    """A convolution over time, height and width [O,I,t,k,k] for frames that are all alike."""
    return state[f"{name}.conv3d.weight"].double().sum(2), state[f"{name}.conv3d.bias"].double()


def chained(first: Conv, point: Conv) -> Conv:
    """A 1x1 convolution behind another one."""
    weight = point[0][:, :, 0, 0]
    return torch.einsum("om,mikl->oikl", weight, first[0]), weight @ first[1] + point[1]


def with_residual(conv: Conv) -> Conv:
    """x + conv(x)."""
    weight = conv[0].clone()
    middle = weight.shape[-1] // 2
    weight[:, :, middle, middle] += torch.eye(weight.shape[0], dtype=weight.dtype)
    return weight, conv[1]


def inverse_haar(channels: Tensor) -> Tensor:
    """Channels [8 C, h, w] of one stage -> [C, 2h, 2w] of the last frame.

    Chunks are low or high in time, height and width; the last frame of a pair is low - high.
    """
    low, high = channels.chunk(2)
    t = (low - high).chunk(4)
    rows = [[t[0] + q * t[1] + p * t[2] + p * q * t[3] for q in (1, -1)] for p in (1, -1)]
    pixels = torch.stack([torch.stack(row, -1) for row in rows], -2)  # [C,h,w,p,q]
    return pixels.permute(0, 1, 3, 2, 4).flatten(3, 4).flatten(1, 2)


def wavelets(channels: int) -> Tensor:
    """Both stages as a 1x1 convolution [RGB * PATCH^2, channels, 1, 1] in front of a pixel shuffle."""
    impulses = torch.eye(channels, dtype=torch.double)[..., None, None]
    images = torch.stack([inverse_haar(inverse_haar(impulse)) for impulse in impulses])
    return images.view(channels, RGB * PATCH**2).t()[..., None, None]


def haar(image: Tensor) -> Tensor:
    """A frame [C,2h,2w] in front of which stand copies of it -> channels [8 C, h, w] of one stage."""
    pixels = image.unflatten(2, (-1, 2)).unflatten(1, (-1, 2))  # [C,h,p,w,q]
    signs = (1, -1)
    low = [
        sum(p**i * q**j * pixels[:, :, i, :, j] for i in (0, 1) for j in (0, 1)) / 4
        for p in signs
        for q in signs
    ]
    frame = torch.cat(low)
    return torch.cat([frame, torch.zeros_like(frame)])


def patches() -> Tensor:
    """Both stages as a matrix [RGB * 64, RGB, PATCH, PATCH] for the pixels of a patch."""
    impulses = torch.eye(RGB * PATCH**2, dtype=torch.double).view(-1, RGB, PATCH, PATCH)
    columns = torch.stack([haar(haar(impulse)).flatten() for impulse in impulses], -1)
    return columns.unflatten(1, (RGB, PATCH, PATCH))


class Folder:
    """Collects the folded state of models.cosmos.decoder under its names."""

    def __init__(self, state: State) -> None:
        self.state, self.folded = state, dict[str, Tensor]()

    def put(self, name: str, conv: Conv) -> None:
        self.folded[f"{name}.weight"], self.folded[f"{name}.bias"] = (t.float() for t in conv)

    def norm(self, name: str, source: str) -> None:
        self.put(name, (self.state[f"{source}.norm.weight"], self.state[f"{source}.norm.bias"]))

    def pair(self, source: str) -> Conv:
        """A 3x3 convolution, then one over time."""
        return chained(conv_of(self.state, f"{source}.0"), conv_of(self.state, f"{source}.1"))

    def block(self, name: str) -> None:
        """A residual block."""
        for number in ("1", "2"):
            self.norm(f"{name}.norm{number}", f"{name}.norm{number}")
            self.put(f"{name}.conv{number}", self.pair(f"{name}.conv{number}"))
        if f"{name}.nin_shortcut.conv3d.weight" in self.state:
            self.put(f"{name}.nin_shortcut", conv_of(self.state, f"{name}.nin_shortcut"))

    def attention(self, name: str, temporal: str) -> None:
        """Attention within the frame, then over frames."""
        self.norm(f"{name}.norm", f"{name}.0.norm")
        for part in ("q", "k", "v", "proj_out"):
            self.put(f"{name}.{part}", conv_of(self.state, f"{name}.0.{part}"))
        self.norm(f"{temporal}.norm", f"{name}.1.norm")
        value = conv_of(self.state, f"{name}.1.v")
        self.put(f"{temporal}.conv", chained(value, conv_of(self.state, f"{name}.1.proj_out")))

    def upsample(self, name: str, temporal: bool) -> None:
        source = f"{name}.upsample"
        if temporal:
            self.put(f"{name}.temporal", with_residual(conv_of(self.state, f"{source}.conv1")))
        spatial = with_residual(conv_of(self.state, f"{source}.conv2"))
        self.put(f"{source}.conv", chained(spatial, conv_of(self.state, f"{source}.conv3")))

    def downsample(self, name: str, temporal: bool) -> None:
        weight, bias = conv_of(self.state, f"{name}.conv1")
        weight[:, :, :2, :2] += torch.eye(len(weight), dtype=weight.dtype)[..., None, None] / 4
        point = conv_of(self.state, f"{name}.conv3")
        if temporal:
            point = chained(with_residual(conv_of(self.state, f"{name}.conv2")), point)
        self.put(f"{name}.conv", chained((weight, bias), point))


def fold_encoder(state: State, config: CosmosConfig) -> dict[str, Tensor]:
    """State in fp32 of the encoding half of models.cosmos.encoder.CosmosEncoder."""
    folder = Folder(state)
    weight, bias = folder.pair("encoder.conv_in")
    # Rows and columns of a kernel are cells times pixels of their patches.
    weight = torch.einsum("omkl,mcyx->ockylx", weight, patches()).flatten(4, 5).flatten(2, 3)
    folder.put("encoder.conv_in", (weight, bias))
    for level in range(len(config.widths)):
        name = f"encoder.down.{level}"
        for block in range(config.num_res_blocks):
            folder.block(f"{name}.block.{block}")
        if level < len(config.widths) - 1:
            folder.downsample(f"{name}.downsample", level == 0)
    for block in ("block_1", "block_2"):
        folder.block(f"encoder.mid.{block}")
    folder.attention("encoder.mid.attn_1", "encoder.mid.temporal_1")
    folder.norm("encoder.norm_out", "encoder.norm_out")
    folder.put("encoder.conv_out", folder.pair("encoder.conv_out"))
    folder.put("quant_conv", conv_of(state, "quant_conv"))
    return folder.folded


def fold(state: State, config: CosmosConfig) -> dict[str, Tensor]:
    """State in fp32 of models.cosmos.decoder.Cosmos but for its table."""
    folder = Folder(state)
    folder.put("post_quant_conv", conv_of(state, "post_quant_conv"))
    folder.put("decoder.conv_in", folder.pair("decoder.conv_in"))
    for block in ("block_1", "block_2"):
        folder.block(f"decoder.mid.{block}")
    folder.attention("decoder.mid.attn_1", "decoder.mid.temporal_1")
    for level in range(len(config.widths)):
        name = f"decoder.up.{level}"
        for block in range(config.num_res_blocks + 1):
            folder.block(f"{name}.block.{block}")
        if level > 0:
            folder.upsample(name, level in config.temporal_levels)
    folder.norm("decoder.norm_out", "decoder.norm_out")
    last = folder.pair("decoder.conv_out")
    none = torch.zeros(RGB * PATCH**2, dtype=torch.double)
    folder.put("decoder.conv_out", chained(last, (wavelets(last[0].shape[0]), none)))
    return folder.folded
