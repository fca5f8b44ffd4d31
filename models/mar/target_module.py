"""TorchScript form of MAR: target or drafter of a bundle of continuous tokens.

Everything is fp32, whatever `prepare` is asked for: the chain multiplies errors of its first step by hundreds,
and the last step's deviation is a hundredth of a token's. Shapes as in network.py; N rows of a chain, T steps.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..ops import lamplighter, packed
from .config import NORM_EPS, StackShape
from .diffusion import Schedule
from .network import MAR, Block, HeadNetwork


class Product(nn.Module):
    """y = x W^T + b."""

    PRODUCTS = ("weight",)

    def __init__(self, weight: Tensor, bias: Tensor) -> None:
        super().__init__()
        self.width: int = weight.shape[0]
        self.register_buffer("weight", weight.detach())
        self.register_buffer("bias", bias.detach())

    def prepare(self, like: Tensor) -> None:
        self.weight = packed(self.weight, like)
        self.bias = self.bias.to(like)

    def forward(self, x: Tensor) -> Tensor:
        return lamplighter.linear(x, self.weight, self.width).add_(self.bias)


def product(linear: nn.Linear) -> Product:
    return Product(linear.weight, linear.bias)


class Norm(nn.Module):
    """LayerNorm."""

    def __init__(self, norm: nn.LayerNorm) -> None:
        super().__init__()
        self.eps: float = norm.eps
        self.register_buffer("weight", norm.weight.detach())
        self.register_buffer("bias", norm.bias.detach())

    def prepare(self, like: Tensor) -> None:
        self.weight = self.weight.to(like)
        self.bias = self.bias.to(like)

    def forward(self, x: Tensor) -> Tensor:
        return F.layer_norm(x, [x.size(-1)], self.weight, self.bias, self.eps)


class BlockModule(nn.Module):
    def __init__(self, block: Block, shape: StackShape) -> None:
        super().__init__()
        self.heads: int = shape.heads
        self.norm1 = Norm(block.norm1)
        self.qkv = product(block.attn.qkv)
        self.proj = product(block.attn.proj)
        self.norm2 = Norm(block.norm2)
        self.fc1 = product(block.mlp.fc1)
        self.fc2 = product(block.mlp.fc2)

    def prepare(self, like: Tensor) -> None:
        self.norm1.prepare(like)
        self.qkv.prepare(like)
        self.proj.prepare(like)
        self.norm2.prepare(like)
        self.fc1.prepare(like)
        self.fc2.prepare(like)

    def forward(self, x: Tensor, seen: Tensor) -> Tensor:
        """x [B,R,E]; seen bool [B,1,1,R]: rows that are read, or empty for all."""
        batch, rows = x.size(0), x.size(1)
        qkv = self.qkv(self.norm1(x)).view(batch, rows, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        if seen.numel() > 0:
            h = F.scaled_dot_product_attention(qkv[0], qkv[1], qkv[2], seen)
        else:
            h = F.scaled_dot_product_attention(qkv[0], qkv[1], qkv[2])
        x = x + self.proj(h.transpose(1, 2).reshape(batch, rows, -1))
        return x.add_(self.fc2(F.gelu(self.fc1(self.norm2(x)))))


class HeadModule(nn.Module):
    """The diffusion head with the shifts, scales and gates of all blocks as one product."""

    def __init__(self, net: HeadNetwork, tables: Schedule) -> None:
        super().__init__()
        final = net.final_layer
        self.eps: float = NORM_EPS
        self.condition = product(net.cond_embed)
        self.input = product(net.input_proj)
        modulations = [part.adaLN_modulation[1] for part in (*net.res_blocks, final)]
        self.modulation = Product(
            torch.cat([linear.weight for linear in modulations]),
            torch.cat([linear.bias for linear in modulations]),
        )
        self.norms = nn.ModuleList(Norm(block.in_ln) for block in net.res_blocks)
        self.inner = nn.ModuleList(product(block.mlp[0]) for block in net.res_blocks)
        self.outer = nn.ModuleList(product(block.mlp[2]) for block in net.res_blocks)
        self.output = product(final.linear)
        self.register_buffer("times", net.time_embed(tables.steps).detach())
        self.register_buffer("tables", tables.step_tables())

    def prepare(self, like: Tensor) -> None:
        self.condition.prepare(like)
        self.input.prepare(like)
        self.modulation.prepare(like)
        for norm, inner, outer in zip(self.norms, self.inner, self.outer):
            norm.prepare(like)
            inner.prepare(like)
            outer.prepare(like)
        self.output.prepare(like)
        self.times = self.times.to(like)
        self.tables = self.tables.to(like)

    def forward(
        self,
        z: Tensor,
        unconditional: Tensor,
        scale: Tensor,
        start: Tensor,
        noise: Tensor,
        temperature: Tensor,
    ) -> tuple[Tensor, Tensor, Tensor]:
        weights = [
            self.condition.weight,
            self.input.weight,
            self.modulation.weight,
            self.output.weight,
        ]
        biases = [self.condition.bias, self.input.bias, self.modulation.bias, self.output.bias]
        norms: list[Tensor] = []
        for norm, inner, outer in zip(self.norms, self.inner, self.outer):
            weights += [inner.weight, outer.weight]
            biases += [inner.bias, outer.bias]
            norms += [norm.weight, norm.bias]
        return lamplighter.denoise(
            z,
            unconditional,
            scale,
            start,
            noise,
            temperature,
            self.times,
            self.tables,
            weights,
            biases,
            norms,
            self.eps,
        )


class TargetModule(nn.Module):
    def __init__(self, model: MAR, tables: Schedule) -> None:
        """tables: the respaced schedule of the chain."""
        super().__init__()
        config = model.config
        self.buffer: int = config.buffer
        self.input = product(model.z_proj)
        self.input_norm = Norm(model.z_proj_ln)
        self.encoder = nn.ModuleList(BlockModule(b, config.encoder) for b in model.encoder_blocks)
        self.encoder_norm = Norm(model.encoder_norm)
        self.between = product(model.decoder_embed)
        self.decoder = nn.ModuleList(BlockModule(b, config.decoder) for b in model.decoder_blocks)
        self.decoder_norm = Norm(model.decoder_norm)
        self.head = HeadModule(model.diffloss.net, tables)

        def keep(name: str, tensor: Tensor) -> None:
            self.register_buffer(name, tensor.detach())

        keep("labels", torch.cat([model.class_emb.weight, model.fake_latent]))
        keep("mask_token", model.mask_token[0, 0])
        keep("encoder_places", model.encoder_pos_embed_learned[0])
        keep("decoder_places", model.decoder_pos_embed_learned[0])
        keep("head_places", model.diffusion_pos_embed_learned[0])

    @torch.jit.export
    def prepare(self, like: Tensor) -> None:
        like = torch.empty(0, dtype=torch.float32, device=like.device)
        self.input.prepare(like)
        self.input_norm.prepare(like)
        for block in self.encoder:
            block.prepare(like)
        self.encoder_norm.prepare(like)
        self.between.prepare(like)
        for block in self.decoder:
            block.prepare(like)
        self.decoder_norm.prepare(like)
        self.head.prepare(like)
        self.labels = self.labels.to(like)
        self.mask_token = self.mask_token.to(like)
        self.encoder_places = self.encoder_places.to(like)
        self.decoder_places = self.decoder_places.to(like)
        self.head_places = self.head_places.to(like)

    def encode(self, latents: Tensor, positions: Tensor, filled: Tensor, classes: Tensor) -> Tensor:
        """Tokens at `positions` int64 [B,V]; only `filled` bool [B,V] ones are there -> [B,buffer+V,E]."""
        spread = positions.unsqueeze(-1).expand(-1, -1, latents.size(2))
        tokens = latents.gather(1, spread).masked_fill(~filled.unsqueeze(-1), 0.0)
        label = F.embedding(classes, self.labels).unsqueeze(1)
        x = self.input(tokens) + self.encoder_places[self.buffer :][positions]
        x = self.input_norm(torch.cat([label + self.encoder_places[: self.buffer], x], 1))
        seen = torch.empty(0, dtype=torch.bool, device=x.device)
        if not bool(filled.all()):
            seen = F.pad(filled, [self.buffer, 0], "constant", 1.0).unsqueeze(1).unsqueeze(1)
        for block in self.encoder:
            x = block(x, seen)
        return self.encoder_norm(x)

    @torch.jit.export
    def context(self, latents: Tensor, visible: Tensor, classes: Tensor) -> Tensor:
        """latents fp32 [B,L,C], visible bool [B,L], classes int64 [B] -> z fp32 [B,L,D].

        Rows of latents that are not visible are not read. The class after the last is none.
        """
        count = visible.sum(1)
        most = int(count.max())
        # Visible positions first, as the checkpoint counts them; behind them padding.
        order = torch.sort(visible.to(torch.uint8), stable=True, dim=1, descending=True)[1]
        positions = order[:, :most]
        filled = torch.arange(most, device=visible.device) < count.unsqueeze(1)
        encoded = self.between(self.encode(latents, positions, filled, classes))
        width = encoded.size(2)
        tokens = encoded[:, self.buffer :]
        tokens = torch.where(filled.unsqueeze(-1), tokens, self.mask_token)
        x = self.mask_token.expand(visible.size(0), visible.size(1), width).contiguous()
        x = x.scatter(1, positions.unsqueeze(-1).expand(-1, -1, width), tokens)
        x = torch.cat([encoded[:, : self.buffer], x], 1) + self.decoder_places
        seen = torch.empty(0, dtype=torch.bool, device=x.device)
        for block in self.decoder:
            x = block(x, seen)
        return self.decoder_norm(x)[:, self.buffer :] + self.head_places

    @torch.jit.export
    def denoise(
        self,
        z: Tensor,
        unconditional: Tensor,
        scale: Tensor,
        start: Tensor,
        noise: Tensor,
        temperature: Tensor,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The chain of N tokens: mean and deviation fp32 [N,C] of the last step, and the sums of the
        log deviations of the others, fp64 [N,C], which temperature does not enter.

        z fp32 [N,D], unconditional [N,D], or [0,D] for no guidance; scale of the guidance and
        temperature fp32 [N]; start fp32 [N,C]; noise fp32 [N,T,C], index 0, of the last step, is not
        read.
        """
        return self.head(z, unconditional, scale, start, noise, temperature)
