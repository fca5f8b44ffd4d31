"""Shapes of the LlamaGen models: GPT, image tokenizer, text encoder; the published sizes by name."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from ..transformer.config import DecoderConfig


def official_ffn_dim(dim: int) -> int:
    """Feed-forward width of the official models: two thirds of 4*dim, rounded up to 256."""
    return (int(2 * (4 * dim) / 3) + 255) // 256 * 256


@dataclass(kw_only=True)
class GPTConfig(DecoderConfig):
    """Sizes of one GPT."""

    HEAD_MULTIPLE = 4  # half of the pairs turn with the row, half with the column

    ffn_dim: int = 0  # 0: the official models' width
    vocab_size: int = 16384
    grid: int = 16
    cls_token_num: int = 120
    caption_dim: int = 2048
    num_classes: int = 1000
    model_type: str = "t2i"
    prefix_rotation: str = "zero"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.ffn_dim = self.ffn_dim or official_ffn_dim(self.dim)
        if self.model_type not in ("t2i", "c2i"):
            raise ValueError(f"model_type: got {self.model_type!r}, expected t2i or c2i")
        if self.prefix_rotation not in ("zero", "identity"):
            raise ValueError(
                f"prefix_rotation: got {self.prefix_rotation!r}, expected zero or identity"
            )

    @property
    def tokens(self) -> int:
        """Number of image tokens."""
        return self.grid * self.grid

    @property
    def max_length(self) -> int:
        return self.cls_token_num + self.tokens


@dataclass
class VQConfig:
    """Dimensions of one image tokenizer; channel multipliers run from the highest resolution."""

    ch: int = 128
    encoder_ch_mult: tuple[int, ...] = (1, 1, 2, 2, 4)
    decoder_ch_mult: tuple[int, ...] = (1, 1, 2, 2, 4)
    num_res_blocks: int = 2
    encoder_res_blocks: int = 0  # of the encoder's levels; 0: num_res_blocks
    z_channels: int = 256
    codebook_size: int = 16384
    codebook_embed_dim: int = 8

    def __post_init__(self) -> None:
        self.encoder_ch_mult = tuple(self.encoder_ch_mult)
        self.decoder_ch_mult = tuple(self.decoder_ch_mult)

    @property
    def downsample(self) -> int:
        return 2 ** (len(self.decoder_ch_mult) - 1)


@dataclass
class T5Config:
    """Dimensions of one T5 encoder (gated GELU feed-forward), named as in a T5 config.json."""

    d_model: int = 2048
    d_kv: int = 64
    num_heads: int = 32
    d_ff: int = 5120
    num_layers: int = 24
    vocab_size: int = 32128
    relative_attention_num_buckets: int = 32
    relative_attention_max_distance: int = 128
    layer_norm_epsilon: float = 1e-6


GPT_SIZES: dict[str, dict[str, int]] = {
    "B": {"n_layer": 12, "n_head": 12, "dim": 768},
    "L": {"n_layer": 24, "n_head": 16, "dim": 1024},
    "XL": {"n_layer": 36, "n_head": 20, "dim": 1280},
    "XXL": {"n_layer": 48, "n_head": 24, "dim": 1536},
    "XXXL": {"n_layer": 48, "n_head": 40, "dim": 2560},
    "1B": {"n_layer": 22, "n_head": 32, "dim": 2048},
    "3B": {"n_layer": 24, "n_head": 32, "dim": 3200},
    "7B": {"n_layer": 32, "n_head": 32, "dim": 4096},
}

PUBLISHED_DOWNSAMPLE = 16  # of the tokenizer the published GPTs were trained with


def as_json(config: GPTConfig | VQConfig | T5Config) -> dict[str, Any]:
    """Plain values for a JSON file."""
    return {k: list(v) if isinstance(v, tuple) else v for k, v in asdict(config).items()}
