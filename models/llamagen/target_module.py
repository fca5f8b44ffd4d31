"""TorchScript form of the LlamaGen GPT: the common decoder and LlamaGen's conditions."""

import torch
import torch.nn.functional as F
from torch import Tensor

from ..ops import lamplighter, packed
from ..transformer.decoder import Decoder
from ..transformer.layer import Read, layer_shape
from .gpt import GPT, CaptionEmbedder, ClassEmbedder, rotary_table


def weight_reader(model: GPT) -> Read:
    """The GPT's weights under the names of models.transformer.decoder."""
    weights = {
        "embedding": model.tok_embeddings.weight,
        "norm": model.norm.weight,
        "head": model.output.weight,
    }
    for number, block in enumerate(model.layers):
        attention, feed = block.attention, block.feed_forward
        parts = {
            "wqkv": attention.wqkv.weight,
            "wo": attention.wo.weight,
            "w2": feed.w2.weight,
            "attention_norm": block.attention_norm.weight,
            "ffn_norm": block.ffn_norm.weight,
        }
        weights.update({f"layers.{number}.{name}": weight for name, weight in parts.items()})

    def read(name: str) -> Tensor:
        if name.endswith(".w13"):
            feed = model.layers[int(name.split(".")[1])].feed_forward
            return torch.cat([feed.w1.weight, feed.w3.weight]).detach()
        return weights[name].detach()

    return read


class GPTDecoder(Decoder):
    """The blocks and ends of a GPT."""

    def __init__(self, model: GPT) -> None:
        config = model.config
        shape = layer_shape(config)
        super().__init__(shape, config.n_layer, weight_reader(model), rotary_table(config))


class TargetModule(GPTDecoder):
    """Text-conditional GPT. Prefix rows come valid rows first; padded rows are zero."""

    PRODUCTS = (*GPTDecoder.PRODUCTS, "fc1", "fc2")

    def __init__(self, model: GPT) -> None:
        super().__init__(model)
        condition = model.cls_embedding
        assert isinstance(condition, CaptionEmbedder)
        self.dim: int = model.config.dim
        self.length: int = model.config.cls_token_num
        self.register_buffer("fc1", condition.cap_proj.fc1.weight.detach())
        self.register_buffer("fc2", condition.cap_proj.fc2.weight.detach())
        self.register_buffer("null_features", condition.uncond_embedding.detach())

    @torch.jit.export
    def prepare(self, like: Tensor) -> None:
        self.prepare_layers(like)
        self.prepare_ends(like)
        self.fc1 = packed(self.fc1, like, False)
        self.fc2 = packed(self.fc2, like, False)
        self.null_features = self.null_features.to(like)

    def project(self, features: Tensor) -> Tensor:
        h = lamplighter.linear(features, self.fc1, self.dim)
        return lamplighter.linear(F.gelu(h, approximate="tanh"), self.fc2, self.dim)

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
        features = torch.embedding(self.null_features, rows.clamp(0, self.length - 1))
        return self.project((features * mask.to(features).unsqueeze(-1)).contiguous())


class ClassTargetModule(GPTDecoder):
    """Class-conditional GPT: the prefix is one row of the class table."""

    def __init__(self, model: GPT) -> None:
        super().__init__(model)
        condition = model.cls_embedding
        assert isinstance(condition, ClassEmbedder)
        self.null_class: int = model.config.num_classes
        self.register_buffer("classes", condition.embedding_table.weight.detach())

    @torch.jit.export
    def prepare(self, like: Tensor) -> None:
        self.prepare_layers(like)
        self.prepare_ends(like)
        self.classes = self.classes.to(like)

    @torch.jit.export
    def embed_condition(self, features: Tensor, mask: Tensor) -> Tensor:
        """features: class ids int64 [B,1], mask [B,1] -> [B,1,H]."""
        return torch.embedding(self.classes, features)

    @torch.jit.export
    def embed_unconditional(self, mask: Tensor) -> Tensor:
        """The null class for every entry of mask [B,1] -> [B,1,H]."""
        return torch.embedding(self.classes, torch.full_like(mask, self.null_class))
