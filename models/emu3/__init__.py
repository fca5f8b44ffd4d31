"""Emu3-Gen (Wang et al. 2024): a Llama whose vocabulary ends with image codes, and its tokenizer of images.

config.py         sizes
decoder.py        plain PyTorch: the image decoder for one frame
folding.py        from the published video network to it
frame_module.py   for the engine: what the image decoder does over time
Emu3.5 (BAAI 2025) adds norms of query and key heads, and an image tokenizer like Chameleon's.
The target is transformer.codes_target.
"""
