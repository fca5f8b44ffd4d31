"""Shape of a Chameleon network and the ids of its tokens."""

from __future__ import annotations

from dataclasses import dataclass

from ..transformer.config import DecoderConfig

QK_NORM_EPS = 1e-5  # fixed in the official code, whatever norm_eps is


@dataclass(kw_only=True)
class ChameleonConfig(DecoderConfig):
    """Dimensions of one network; the defaults are the published 7B models'."""

    dim: int = 4096
    n_layer: int = 32
    n_head: int = 32
    n_kv_head: int = 32
    ffn_dim: int = 11008
    vocab_size: int = 65536
    max_positions: int = 4096
    swin_norm: bool = False  # norms behind the branches instead of in front of them (30B)

    @property
    def normed_heads(self) -> int:
        """Heads with a norm of their own: queries, then keys."""
        return self.n_head + self.n_kv_head


@dataclass
class TokenIds:
    """Ids with a meaning; the defaults are the published vocabulary's."""

    bos: int = 0
    first_image_id: int = 4  # of code 0; the codes follow one another
    codebook_size: int = 8192
    end_of_image: int = 8196
    begin_of_image: int = 8197
    separator: int = 8710  # ends the user's text, and Lumina-mGPT's answer
    end_of_text: int = 2
    row_end: int = 8803
    size_base: int = 8804  # + n stands for 32 n pixels

    def codes(self) -> range:
        return range(self.first_image_id, self.first_image_id + self.codebook_size)

    def largest(self) -> int:
        """The largest id that prompts and images without a size need."""
        last_code = self.first_image_id + self.codebook_size - 1
        return max(self.bos, last_code, self.begin_of_image, self.separator)
