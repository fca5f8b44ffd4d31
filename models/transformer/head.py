"""A target's head: one product, or two with biases and a GELU between (Janus-Pro).

Shapes: H width, E inner width, V codes. Modules hold the weights in buffers of these names: head [V,H], or
head_in [E,H], head_in_bias, head [V,E] and head_bias. Drafters that share the target's head take both forms.
"""

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.jit import Final

from ..ops import lamplighter, packed

NAMES = ("head_in", "head_in_bias", "head", "head_bias")


@dataclass(frozen=True)
class TwoLayers:
    """The weights, in the order of NAMES."""

    inner: Tensor
    inner_bias: Tensor
    outer: Tensor
    outer_bias: Tensor


Head = Tensor | TwoLayers


def head_of(weights: Mapping[str, Tensor]) -> Head:
    """The head among weights by name. KeyError: there is none."""
    return (
        TwoLayers(*(weights[name] for name in NAMES)) if "head_in" in weights else weights["head"]
    )


def weights_of(head: Head) -> dict[str, Tensor]:
    """Its weights by name."""
    if isinstance(head, Tensor):
        return {"head": head}
    weights = (head.inner, head.inner_bias, head.outer, head.outer_bias)
    return dict(zip(NAMES, weights, strict=True))


def codes_of(head: Head) -> int:
    """V."""
    return len(weights_of(head)["head"])


def in_fp32(head: Head) -> Head:
    """A copy."""
    return head_of({name: weight.float().clone() for name, weight in weights_of(head).items()})


def logits_of(hidden: Tensor, head: Head) -> Tensor:
    """hidden [...,H] -> [...,V], in the precision of `hidden`."""
    if isinstance(head, Tensor):
        return F.linear(hidden, head.to(hidden.dtype))
    inner, inner_bias, outer, outer_bias = (w.to(hidden.dtype) for w in weights_of(head).values())
    return F.linear(F.gelu(F.linear(hidden, inner, inner_bias)), outer, outer_bias)


def keep_head(module: nn.Module, head: Head) -> None:
    """Copies the head into the module's buffers, with the sizes that its `logits` reads."""
    weights = weights_of(head)
    for name, weight in weights.items():
        module.register_buffer(name, weight.detach().clone())
    module.vocabulary = weights["head"].shape[0]
    if not isinstance(head, Tensor):
        module.head_width = head.inner.shape[0]


class TwoLayerHead(nn.Module):
    """Mixin in front of a module's class: replaces its head of one product.

    int8_head: bf16 products are rounded as models.ops.packed says, for drafters.
    """

    def prepare_head(self, like: Tensor) -> None:
        self.head = packed(self.head, like, self.int8_head)
        self.head_in = packed(self.head_in, like, self.int8_head)
        self.head_in_bias = self.head_in_bias.to(like)
        self.head_bias = self.head_bias.to(like)

    @torch.jit.export
    def logits(self, hidden: Tensor) -> Tensor:
        """hidden [S,R,H] -> [S,R,V]."""
        h = lamplighter.linear(hidden, self.head_in, self.head_width) + self.head_in_bias
        h = lamplighter.linear(lamplighter.gelu(h), self.head, self.vocabulary)
        return h + self.head_bias


@functools.cache
def with_two_layers(module: Any) -> Any:
    """The class of the same drafter for a target whose head has two layers."""
    members = {
        "__doc__": f"{module.__name__} for a target whose head has two layers.",
        "__module__": module.__module__,
        "__annotations__": {"int8_head": Final[bool]},
        "PRODUCTS": (*module.PRODUCTS, "head_in"),
        "int8_head": True,
    }
    return type(f"TwoLayer{module.__name__}", (TwoLayerHead, module), members)


def fitting(module: Any, head: Head) -> Any:
    """The class of a drafter's module, or its form with two layers where the target's head has them."""
    return module if isinstance(head, Tensor) else with_two_layers(module)
