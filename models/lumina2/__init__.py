"""Lumina-mGPT 2.0: Chameleon's network with more ids, and an image tokenizer of its own.

    movqgan.py  the image tokenizer in plain PyTorch

The network is that of models.chameleon; the decoder's form for the engine is models.vq.spatial_decoder_module.
"""
