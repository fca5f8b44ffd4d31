"""The TorchScript forms of the LlamaGen models."""

from ..vq.image_decoder_module import ImageDecoderModule
from .target_module import ClassTargetModule, TargetModule
from .text_encoder_module import TextEncoderModule

__all__ = ["ClassTargetModule", "ImageDecoderModule", "TargetModule", "TextEncoderModule"]
