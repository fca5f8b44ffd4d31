"""Emu3-Gen (Wang et al. 2024): a Llama whose vocabulary ends with image codes, and its tokenizer of images.

config.py         sizes
decoder.py        plain PyTorch: the image decoder for one frame
folding.py        from the published video network to it
frame_module.py   for the engine: what the image decoder does over time
The target is transformer.codes_target.
"""
