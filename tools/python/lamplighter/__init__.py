"""Draws images with visual autoregressive models, several tokens per step of the model.

engine = lamplighter.TextToImage("models/demo/bundle")
engine.generate("a red boat on the sea at dawn", method="sjd")[0].image.save("boat.png")
"""

import torch

from ._built import TORCH as _BUILT_WITH

# Torch comes first: the native part finds its libraries loaded and loads no second copy.
_REBUILD = (
    f"lamplighter was built with Torch {_BUILT_WITH}, found {torch.__version__}; build it again: "
    "pip install --force-reinstall --no-deps --no-build-isolation ."
)
if torch.__version__.split("+")[0] != _BUILT_WITH:
    raise ImportError(_REBUILD)
try:
    from . import _native
except ImportError as error:
    raise ImportError(f"{_REBUILD} ({str(error).splitlines()[0]})") from None

from .engine import Error, Result, Statistics, TextToImage  # noqa: E402  after the native part

__version__ = _native.version
__all__ = ["Error", "Result", "Statistics", "TextToImage"]
