"""TorchScript form of the EAGLE-3 drafter; shapes as in eagle3.py."""

import torch
from torch import Tensor, nn
from torch.jit import Final

from ..ops import lamplighter, packed
from ..transformer.layer import Layer
from .eagle3 import Eagle3Drafter
from .module import layer_shape, projections


class Eagle3Module(nn.Module):
    """One drafter; its layer has cache and rotations as `attend` takes them."""

    PRODUCTS = ("fc", "head")
    partial: Final[bool]

    def __init__(self, drafter: Eagle3Drafter, first: int, codes: int) -> None:
        """first, codes: the ids of images; other entries of the draft vocabulary are left out."""
        super().__init__()
        layer, config = drafter.midlayer, drafter.config.layer
        ids = torch.arange(len(drafter.d2t)) + drafter.d2t
        kept = ((ids >= first) & (ids < first + codes)).nonzero().flatten()
        self.hidden: int = config.hidden
        self.codes: int = codes
        self.known: int = len(kept)
        self.eps: float = config.norm_eps
        weights = {
            "wqkv": projections(layer.self_attn),
            "wo": layer.self_attn.o_proj.weight,
            "attention_norm": layer.post_attention_layernorm.weight,
            "w13": torch.cat([layer.mlp.gate_proj.weight, layer.mlp.up_proj.weight]),
            "w2": layer.mlp.down_proj.weight,
            "feed_norm": torch.empty(0),
        }
        self.layer = Layer(layer_shape(config), 0, lambda name: weights[name].detach().clone())

        def keep(name: str, tensor: Tensor) -> None:
            self.register_buffer(name, tensor.detach().clone())

        keep("embedding", drafter.embed_tokens.weight)
        keep("fc", drafter.fc.weight)
        keep("token_norm", layer.input_layernorm.weight)
        keep("feature_norm", layer.hidden_norm.weight)
        keep("norm", drafter.norm.weight)
        keep("head", drafter.lm_head.weight[kept])
        keep("columns", ids[kept] - first)
        keep("rotary", drafter.rotary)
        self.partial = bool(self.known != codes or (self.columns != torch.arange(codes)).any())

    @torch.jit.export
    def prepare(self, like: Tensor) -> None:
        self.embedding = self.embedding.to(like)
        self.fc = packed(self.fc, like, True)
        self.token_norm = self.token_norm.to(like)
        self.feature_norm = self.feature_norm.to(like)
        self.layer.prepare(like)
        self.norm = self.norm.to(like)
        self.head = packed(self.head, like, True)
        self.columns = self.columns.to(like.device)
        self.rotary = self.rotary.to(like.device)

    @torch.jit.export
    def embed(self, ids: Tensor) -> Tensor:
        """ids int64 [S,R] -> [S,R,H]."""
        return torch.embedding(self.embedding, ids)

    def forward(
        self,
        embeddings: Tensor,
        features: Tensor,
        positions: Tensor,
        tree_mask: Tensor,
        lengths: Tensor,
        cache: Tensor,
    ) -> Tensor:
        """Embeddings [S,R,H] of token i + 1, features [S,R,F] of token i, or [S,R,H] of its own ->
        [S,R,H], before the norm. The rest as DrafterModule.forward."""
        x = features
        if features.size(2) != self.hidden:
            x = lamplighter.linear(features, self.fc, self.hidden)
        tokens = lamplighter.rms_norm(embeddings, self.token_norm, self.eps)
        own = lamplighter.rms_norm(x, self.feature_norm, self.eps)
        h = torch.cat([tokens, own], -1)
        h = self.layer.attend(h, positions, tree_mask, lengths, self.rotary, cache)
        residual = x.clone()
        h = self.layer.add(residual, h, self.layer.attention_norm)
        return residual + self.layer.feed(h)

    @torch.jit.export
    def logits(self, hidden: Tensor) -> Tensor:
        """hidden [S,R,H] -> [S,R,V]."""
        h = lamplighter.rms_norm(hidden, self.norm, self.eps)
        known = lamplighter.linear(h, self.head, self.known)
        if not self.partial:
            return known
        shape = [hidden.size(0), hidden.size(1), self.codes]
        # A logit that no guidance brings back.
        full = torch.full(shape, -1e4, dtype=known.dtype, device=known.device)
        return full.index_copy_(2, self.columns, known)
