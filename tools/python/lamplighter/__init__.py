"""Generates images with visual autoregressive models and speculative decoding.

engine = lamplighter.TextToImage("models/demo/bundle")
engine.generate("a red boat on the sea at dawn", method="sjd")[0].image.save("boat.png")
"""

from importlib.util import find_spec

import torch

# Configuring a build writes the first of them, building it the second.
if not all(find_spec(f"{__name__}.{part}") for part in ("_built", "_native")):
    raise ImportError(
        f"lamplighter: the native part is not built in {__path__[0]}; "
        "run scripts/setup.sh and set PYTHONPATH=build/python, or run pip install --no-build-isolation ."
    )

from ._built import TORCH as _BUILT_WITH  # noqa: E402  after the check

# Import Torch first, so that the native part uses its libraries and loads no second copy.
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

from .engine import TextToImage, methods, option_meanings  # noqa: E402  after the native part
from .error import Error  # noqa: E402
from .pipeline import Pipeline, PipelineOutput  # noqa: E402
from .result import Description, Result, Statistics  # noqa: E402

__version__ = _native.version
__all__ = [
    "Description",
    "Error",
    "Pipeline",
    "PipelineOutput",
    "Result",
    "Statistics",
    "TextToImage",
    "methods",
    "option_meanings",
]
