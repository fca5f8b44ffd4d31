"""The large networks of the enlarged demo, in which codes from `known` on are never sampled."""

from __future__ import annotations

import torch
from torch import Tensor

from ..eagle.drafter import Drafter
from ..eagle.module import DrafterModule
from ..heads.flash import Flash
from ..heads.flash_module import FlashModule
from ..heads.medusa import Heads
from ..heads.medusa_module import HeadsModule
from ..heads.mlp import Speculator
from ..heads.mlp_module import SpeculatorModule
from ..heads.refine import Refiner
from ..heads.refine_module import RefinerModule
from ..llamagen.gpt import GPT
from ..llamagen.target_module import TargetModule
from ..ops import lamplighter
from .enlarger import only_known


class EnlargedTarget(TargetModule):
    def __init__(self, model: GPT, known: int) -> None:
        super().__init__(model)
        self.known: int = known

    @torch.jit.export
    def logits(self, hidden: Tensor) -> Tensor:
        """hidden [S,R,H] -> [S,R,V]."""
        return only_known(lamplighter.linear(hidden, self.head, self.vocabulary), self.known)


class EnlargedDrafter(DrafterModule):
    def __init__(self, drafter: Drafter, head: Tensor, known: int) -> None:
        super().__init__(drafter, head)
        self.known: int = known

    @torch.jit.export
    def logits(self, hidden: Tensor) -> Tensor:
        """hidden [S,R,H] -> [S,R,V]."""
        return only_known(lamplighter.linear(hidden, self.head, self.vocabulary), self.known)


class EnlargedFlash(FlashModule):
    def __init__(self, flash: Flash, head: Tensor, known: int) -> None:
        super().__init__(flash, head)
        self.known: int = known

    def logits(self, hidden: Tensor) -> Tensor:
        """hidden [S,R,H] -> [S,R,V]."""
        return only_known(lamplighter.linear(hidden, self.head, self.vocabulary), self.known)


class EnlargedHeads(HeadsModule):
    def __init__(self, heads: Heads, known: int) -> None:
        super().__init__(heads)
        self.known: int = known

    @torch.jit.export
    def heads(self, hidden: Tensor) -> Tensor:
        """hidden [S,1,H] -> [S,K,V]."""
        return only_known(torch.cat([head(hidden) for head in self.all], 1), self.known)


class EnlargedSpeculator(SpeculatorModule):
    def __init__(self, speculator: Speculator, known: int) -> None:
        super().__init__(speculator, 0, speculator.config.vocabulary)
        self.known: int = known

    @torch.jit.export
    def logits(self, state: Tensor, number: Tensor) -> Tensor:
        """state [S,R,I] after step `number` -> [S,R,V]."""
        index = int(number)
        i = 0
        for one in self.steps:
            if i == index:
                return only_known(one.logits(state), self.known)
            i += 1
        return state


class EnlargedRefiner(RefinerModule):
    def __init__(self, refiner: Refiner, known: int) -> None:
        super().__init__(refiner)
        self.known: int = known

    @torch.jit.export
    def logits(self, state: Tensor) -> Tensor:
        """state [I,1,K] -> [I,1,V]."""
        logits = lamplighter.linear(state, self.head, self.codes) + self.head_bias
        return only_known(logits, self.known)
