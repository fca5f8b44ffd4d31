"""Lumina-mGPT 2.0: Chameleon's network with more ids, and an image tokenizer of its own.

    movqgan.py  the image tokenizer in plain PyTorch

The network is models.chameleon's; models.vq.spatial_decoder_module is the decoder for the engine.
"""
