"""TorchScript form of the T5 encoder that calls torch.ops.lamplighter (see target_module)."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..ops import packed
from .config import T5Config
from .t5 import EncoderBlock, T5Encoder, relative_buckets


class TextEncoderLayer(nn.Module):
    """Weights of one T5 block, q|k|v and wi_0|wi_1 joined."""

    PRODUCTS = ("qkv", "o", "wi", "wo")

    def __init__(self, block: EncoderBlock) -> None:
        super().__init__()
        first, second = block.layer[0], block.layer[1]
        attention, dense = first.SelfAttention, second.DenseReluDense
        qkv = torch.cat([attention.q.weight, attention.k.weight, attention.v.weight])
        self.register_buffer("qkv", qkv.detach())
        self.register_buffer("o", attention.o.weight.detach())
        self.register_buffer("wi", torch.cat([dense.wi_0.weight, dense.wi_1.weight]).detach())
        self.register_buffer("wo", dense.wo.weight.detach())
        self.register_buffer("norm1", first.layer_norm.weight.detach())
        self.register_buffer("norm2", second.layer_norm.weight.detach())

    def prepare(self, like: Tensor) -> None:
        self.qkv = packed(self.qkv, like)
        self.o = packed(self.o, like)
        self.wi = packed(self.wi, like)
        self.wo = packed(self.wo, like)
        self.norm1 = self.norm1.to(like)
        self.norm2 = self.norm2.to(like)


class TextEncoderModule(nn.Module):
    """T5 encoder; the relative buckets of distances are an integer table in the archive."""

    def __init__(self, model: T5Encoder) -> None:
        super().__init__()
        config: T5Config = model.config
        self.dim: int = config.d_model
        self.heads: int = config.num_heads
        self.inner: int = config.num_heads * config.d_kv
        self.wi_width: int = 2 * config.d_ff
        self.eps: float = config.layer_norm_epsilon
        self.layers = nn.ModuleList(TextEncoderLayer(b) for b in model.encoder.block)
        attention = model.encoder.block[0].layer[0].SelfAttention
        self.register_buffer("embedding", model.shared.weight.detach())
        self.register_buffer("bias", attention.relative_attention_bias.weight.detach())
        self.register_buffer("final_norm", model.encoder.final_layer_norm.weight.detach())
        self.reach: int = config.relative_attention_max_distance
        square = relative_buckets(self.reach + 1, config.relative_attention_num_buckets, self.reach)
        before, after = square[-1, :-1], square[0]
        self.register_buffer("buckets", torch.cat([before, after]))

    @torch.jit.export
    def prepare(self, like: Tensor) -> None:
        for layer in self.layers:
            layer.prepare(like)
        self.embedding = self.embedding.to(like)
        self.bias = self.bias.to(like)
        self.final_norm = self.final_norm.to(like)
        self.buckets = self.buckets.to(like.device)

    def attention_bias(self, mask: Tensor) -> Tensor:
        """Relative bias, minus infinity on padded keys: fp32 [B,heads,T,T]."""
        position = torch.arange(mask.size(1), device=mask.device)
        distance = (position.unsqueeze(0) - position.unsqueeze(1)).clamp(-self.reach, self.reach)
        bias = F.embedding(self.buckets[distance + self.reach], self.bias).permute(2, 0, 1)
        hidden = (mask == 0).unsqueeze(1).unsqueeze(1)
        return bias.float().unsqueeze(0).masked_fill(hidden, float("-inf"))

    @torch.jit.export
    def encode(self, ids: Tensor, mask: Tensor) -> Tensor:
        """ids, mask int64 [B,T] right padded, at least one valid id a row -> [B,T,C]."""
        batch, length = ids.size(0), ids.size(1)
        bias = self.attention_bias(mask)
        x = F.embedding(ids, self.embedding)
        for layer in self.layers:
            h = torch.ops.lamplighter.rms_norm(x, layer.norm1, self.eps)
            h = torch.ops.lamplighter.linear(h, layer.qkv, 3 * self.inner)
            qkv = h.view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
            scores = torch.matmul(qkv[0], qkv[1].transpose(-1, -2)).float() + bias
            h = torch.matmul(scores.softmax(-1).to(x.dtype), qkv[2])
            h = h.transpose(1, 2).reshape(batch, length, self.inner)
            h = torch.ops.lamplighter.linear(h, layer.o, self.dim)
            h = torch.ops.lamplighter.add_rms_norm(x, h, layer.norm2, self.eps)
            gate, up = torch.ops.lamplighter.linear(h, layer.wi, self.wi_width).chunk(2, -1)
            h = (F.gelu(gate, approximate="tanh") * up).contiguous()
            x = x + torch.ops.lamplighter.linear(h, layer.wo, self.dim)
        return torch.ops.lamplighter.rms_norm(x, self.final_norm, self.eps)
