"""TorchScript form of Cosmos' encoder: pixels to codes."""

import torch
from torch import Tensor, nn

from ..vq.blocks import ImageTokenizer
from ..vq.image_encoder_module import encoder_blocks
from .encoder import CosmosEncoder


class FiniteEncoderModule(nn.Module):
    """Pixels to codes, in two steps: bounded latents, and the codes of their digits."""

    def __init__(self, model: ImageTokenizer) -> None:
        super().__init__()
        assert isinstance(model, CosmosEncoder)
        self.blocks = encoder_blocks(model)
        for name, part in model.bound.named_buffers():
            self.register_buffer(name, part)
        levels = model.config.levels
        basis = torch.tensor([1, *levels[:-1]]).cumprod(0)
        self.register_buffer("basis", basis.float().view(-1, 1, 1))
        self.text: int = model.quantize.text

    @torch.jit.export
    def prepare(self, like: Tensor) -> None:
        for block in self.blocks:
            block.prepare(like)
        self.span = self.span.to(like.device)
        self.offset = self.offset.to(like.device)
        self.shift = self.shift.to(like.device)
        self.unit = self.unit.to(like.device)
        self.basis = self.basis.to(like.device)

    @torch.jit.export
    def latents(self, rgb: Tensor) -> Tensor:
        """rgb [B,3,h,w] in [-1,1] -> fp32 [B,C,rows,cols] before they are rounded."""
        x = rgb
        for block in self.blocks:
            x = block(x)
        return (torch.tanh(x.float() + self.shift) * self.span - self.offset) / self.unit

    @torch.jit.export
    def nearest(self, latents: Tensor) -> Tensor:
        """latents [B,C,rows,cols] -> codes int64 [B,rows,cols]."""
        digits = torch.round(latents.float() * self.unit) + self.unit
        return (digits * self.basis).sum(1).long() + self.text
