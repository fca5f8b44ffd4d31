"""The autoregressive stage of GLM-Image (Z.ai 2026): a GLM-4 that generates a small image's codes, then a large one's.

config.py   sizes
places.py   where rows of a sequence stand, by which their queries and keys turn
The target is transformer.codes_target.
"""
