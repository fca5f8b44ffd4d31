"""TorchScript form of the LlamaGen GPT that calls torch.ops.lamplighter.

The weights are plain buffers in storage precision; `prepare(like)` casts them to the dtype of
`like` and packs them for the device once after loading. The operator library must be loaded
(models.ops.load) before a module is scripted. Shapes: S sequences, R rows of a sequence.
"""

from typing import Tuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..ops import packed
from .gpt import GPT, Block, CaptionEmbedder, ClassEmbedder, rotary_table


class TargetLayer(nn.Module):
    """Weights of one block, q|k|v and w1|w3 joined; `next_norm` is the norm that follows it."""

    def __init__(self, block: Block, next_norm: Tensor) -> None:
        super().__init__()
        attention, feed = block.attention, block.feed_forward
        self.register_buffer("wqkv", attention.wqkv.weight.detach())
        self.register_buffer("wo", attention.wo.weight.detach())
        self.register_buffer("w13", torch.cat([feed.w1.weight, feed.w3.weight]).detach())
        self.register_buffer("w2", feed.w2.weight.detach())
        self.register_buffer("ffn_norm", block.ffn_norm.weight.detach())
        self.register_buffer("next_norm", next_norm.detach().clone())

    def prepare(self, like: Tensor) -> None:
        self.wqkv = packed(self.wqkv, like)
        self.wo = packed(self.wo, like)
        self.w13 = packed(self.w13, like)
        self.w2 = packed(self.w2, like)
        self.ffn_norm = self.ffn_norm.to(like)
        self.next_norm = self.next_norm.to(like)


class Trunk(nn.Module):
    """Embedding of image tokens, transformer blocks and head; the condition is a subclass's."""

    def __init__(self, model: GPT) -> None:
        super().__init__()
        config = model.config
        self.dim: int = config.dim
        self.vocabulary: int = config.vocab_size
        self.heads: int = config.n_head
        self.kv_heads: int = config.n_kv_head
        self.qkv_width: int = (config.n_head + 2 * config.n_kv_head) * config.head_dim
        self.ffn_width: int = 2 * config.ffn_dim
        self.eps: float = config.norm_eps
        self.scale: float = config.head_dim**-0.5
        blocks = list(model.layers)
        norms = [block.attention_norm.weight for block in blocks[1:]] + [model.norm.weight]
        self.layers = nn.ModuleList(TargetLayer(b, n) for b, n in zip(blocks, norms))
        self.register_buffer("first_norm", blocks[0].attention_norm.weight.detach())
        self.register_buffer("embedding", model.tok_embeddings.weight.detach())
        self.register_buffer("head", model.output.weight.detach())
        self.register_buffer("rotary", rotary_table(config))

    def prepare_trunk(self, like: Tensor) -> None:
        for layer in self.layers:
            layer.prepare(like)
        self.first_norm = self.first_norm.to(like)
        self.embedding = self.embedding.to(like)
        self.head = packed(self.head, like)
        self.rotary = self.rotary.to(like.device)

    @torch.jit.export
    def embed(self, ids: Tensor) -> Tensor:
        """ids int64 [S,R] -> [S,R,H]."""
        return F.embedding(ids, self.embedding)

    def forward(
        self, x: Tensor, positions: Tensor, tree_mask: Tensor, lengths: Tensor, cache: Tensor
    ) -> Tuple[Tensor, Tensor]:
        """x [S,R,H] -> (hidden after the final norm [S,R,H], features: the same tensor).

        positions int64 [S,R] rows of the rotary table; lengths int64 [S]; tree_mask and
        cache as in the operator `attend`.
        """
        residual = x.clone()
        h = torch.ops.lamplighter.rms_norm(x, self.first_norm, self.eps)
        for index, layer in enumerate(self.layers):
            qkv = torch.ops.lamplighter.linear(h, layer.wqkv, self.qkv_width)
            h = torch.ops.lamplighter.attend(
                qkv, cache, index, positions, lengths, tree_mask,
                self.rotary, self.heads, self.kv_heads, self.scale,
            )  # fmt: skip
            h = torch.ops.lamplighter.linear(h, layer.wo, self.dim)
            h = torch.ops.lamplighter.add_rms_norm(residual, h, layer.ffn_norm, self.eps)
            h = torch.ops.lamplighter.linear(h, layer.w13, self.ffn_width)
            h = torch.ops.lamplighter.silu_mul(h)
            h = torch.ops.lamplighter.linear(h, layer.w2, self.dim)
            h = torch.ops.lamplighter.add_rms_norm(residual, h, layer.next_norm, self.eps)
        return h, h

    @torch.jit.export
    def logits(self, hidden: Tensor) -> Tensor:
        """hidden [S,R,H] -> [S,R,V]."""
        return torch.ops.lamplighter.linear(hidden, self.head, self.vocabulary)


class TargetModule(Trunk):
    """Text-conditional GPT. Prefix rows come valid rows first; padded rows are zero."""

    def __init__(self, model: GPT) -> None:
        super().__init__(model)
        condition = model.cls_embedding
        assert isinstance(condition, CaptionEmbedder)
        self.length: int = model.config.cls_token_num
        self.register_buffer("fc1", condition.cap_proj.fc1.weight.detach())
        self.register_buffer("fc2", condition.cap_proj.fc2.weight.detach())
        self.register_buffer("null_features", condition.uncond_embedding.detach())

    @torch.jit.export
    def prepare(self, like: Tensor) -> None:
        self.prepare_trunk(like)
        self.fc1 = packed(self.fc1, like)
        self.fc2 = packed(self.fc2, like)
        self.null_features = self.null_features.to(like)

    def project(self, features: Tensor) -> Tensor:
        h = torch.ops.lamplighter.linear(features, self.fc1, self.dim)
        return torch.ops.lamplighter.linear(F.gelu(h, approximate="tanh"), self.fc2, self.dim)

    @torch.jit.export
    def embed_condition(self, features: Tensor, mask: Tensor) -> Tensor:
        """features [B,T,C], mask int64 [B,T] -> prefix rows [B,T,H]."""
        features = features.to(self.null_features)
        return self.project((features * mask.to(features).unsqueeze(-1)).contiguous())

    @torch.jit.export
    def embed_unconditional(self, mask: Tensor) -> Tensor:
        """The last n rows of the null caption for captions of n = sum(mask) rows: [B,T,H]."""
        columns = torch.arange(mask.size(1), device=mask.device)
        rows = self.length - mask.sum(1, keepdim=True) + columns
        features = F.embedding(rows.clamp(0, self.length - 1), self.null_features)
        return self.project((features * mask.to(features).unsqueeze(-1)).contiguous())


class ClassTargetModule(Trunk):
    """Class-conditional GPT: the prefix is one row of the class table."""

    def __init__(self, model: GPT) -> None:
        super().__init__(model)
        condition = model.cls_embedding
        assert isinstance(condition, ClassEmbedder)
        self.null_class: int = model.config.num_classes
        self.register_buffer("classes", condition.embedding_table.weight.detach())

    @torch.jit.export
    def prepare(self, like: Tensor) -> None:
        self.prepare_trunk(like)
        self.classes = self.classes.to(like)

    @torch.jit.export
    def embed_condition(self, features: Tensor, mask: Tensor) -> Tensor:
        """features: class ids int64 [B,1], mask [B,1] -> [B,1,H]."""
        return F.embedding(features, self.classes)

    @torch.jit.export
    def embed_unconditional(self, mask: Tensor) -> Tensor:
        """The null class for every entry of mask [B,1] -> [B,1,H]."""
        return F.embedding(torch.full_like(mask, self.null_class), self.classes)
