"""TorchScript form of TA-Tok's decoding half, which stands in the place of a text encoder."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..mar.target_module import Norm, Product, product
from .ta_tok import Block, TaTok


class BlockModule(nn.Module):
    def __init__(self, block: Block, heads: int) -> None:
        super().__init__()
        self.heads: int = heads
        norms = (block.layer_norm1, block.layer_norm2)
        self.norm1, self.norm2 = Norm(norms[0]), Norm(norms[1])
        self.qkv = Product(*block.self_attn.qkv())
        self.proj = product(block.self_attn.out_proj)
        self.fc1 = product(block.mlp.fc1)
        self.fc2 = product(block.mlp.fc2)

    def prepare(self, like: Tensor) -> None:
        self.norm1.prepare(like)
        self.norm2.prepare(like)
        self.qkv.prepare(like)
        self.proj.prepare(like)
        self.fc1.prepare(like)
        self.fc2.prepare(like)

    def forward(self, x: Tensor) -> Tensor:
        """x [B,T,H]; every row sees all."""
        batch, rows = x.size(0), x.size(1)
        qkv = self.qkv(self.norm1(x)).view(batch, rows, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        h = F.scaled_dot_product_attention(qkv[0], qkv[1], qkv[2])
        x = x + self.proj(h.transpose(1, 2).reshape(batch, rows, -1))
        h = F.gelu(self.fc1(self.norm2(x)), approximate="tanh")
        return x.add_(self.fc2(h))


class TextEncoderModule(nn.Module):
    """Features of the codes of a square image. The products in front of the first block are part of the table."""

    def __init__(self, model: TaTok, dtype: torch.dtype) -> None:
        """dtype: of the table and the positions."""
        super().__init__()
        config = model.config
        self.side: int = math.isqrt(config.places)
        self.register_buffer("codes", model.embedded_codes().to(dtype).detach())
        places = model.decoder.embeddings.position_embedding.weight.detach()
        self.register_buffer("places", places.to(dtype))
        blocks = model.decoder.encoder.layers
        self.blocks = nn.ModuleList(BlockModule(block, config.HEADS) for block in blocks)
        self.norm = Norm(model.decoder.post_layernorm)
        self.first = product(model.decode_task_layer[0])
        self.last = product(model.decode_task_layer[2])

    @torch.jit.export
    def prepare(self, like: Tensor) -> None:
        self.codes = self.codes.to(like)
        self.places = self.places.to(like.device, torch.float32)
        for block in self.blocks:
            block.prepare(like)
        self.norm.prepare(like)
        self.first.prepare(like)
        self.last.prepare(like)

    def positions(self, side: int) -> Tensor:
        """The learned positions, resized to a square of side^2 codes: fp32 [side^2,H]."""
        square = self.places.t().reshape(1, -1, self.side, self.side)
        square = F.interpolate(
            square, size=[side, side], mode="bilinear", align_corners=False, antialias=True
        )
        return square[0].flatten(1).t()

    @torch.jit.export
    def encode(self, ids: Tensor, mask: Tensor) -> Tensor:
        """ids int64 [B,T] in raster order of a square; mask: all ones -> [B,T,C]."""
        side = int(round(math.sqrt(ids.size(1))))
        x = F.embedding(ids, self.codes)
        x = x + self.positions(side).to(x)
        for block in self.blocks:
            x = block(x)
        return self.last(torch.tanh(self.first(self.norm(x))))
