"""Cosmos' discrete video tokenizer (NVIDIA 2025), for images.

decoder.py, encoder.py  plain PyTorch on the blocks of models.vq
folding.py              from the published video network to it
encoder_module.py       for the engine: the encoder
"""
