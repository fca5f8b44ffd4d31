"""Loads the operator library so that torch.ops.lamplighter is available."""

import os
from pathlib import Path

import torch
from torch import Tensor

LIBRARY_NAME = "liblamplighter_ops.so"
lamplighter = torch.ops.lamplighter


def library_path() -> Path:
    """The file named by LAMPLIGHTER_OPS, else the one in the repository's build folder."""
    named = os.environ.get("LAMPLIGHTER_OPS")
    if named:
        return Path(named)
    return Path(__file__).resolve().parent.parent / "build" / LIBRARY_NAME


def load() -> None:
    """Loads the library once; FileNotFoundError says how to get it."""
    path = library_path()
    if str(path) in torch.ops.loaded_libraries:
        return
    if not path.is_file():
        raise FileNotFoundError(
            f"operator library: {path} does not exist; build it with scripts/setup.sh or name it "
            "in LAMPLIGHTER_OPS"
        )
    torch.ops.load_library(str(path))


def packed(weight: Tensor, like: Tensor, int8: bool = False) -> Tensor:
    """A weight [out,in] in the dtype and on the device of `like`, laid out for `linear`.

    For use in scripted modules; a weight that is packed already is returned as it is. With int8,
    weights in bf16 are rounded to int8, which the CPU streams faster: for drafters, which only
    draft, and verification by the target stays lossless. Weights that the bundle
    stores rounded (models.rounding) stay so.
    """
    if weight.dim() != 2:
        return weight
    if not weight.is_floating_point():
        return lamplighter.pack_linear(weight.to(like.device))
    weight = weight.to(like).contiguous()
    if int8 and weight.dtype == torch.bfloat16:
        return lamplighter.pack_linear_int8(weight)
    return lamplighter.pack_linear(weight)
