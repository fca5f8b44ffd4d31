"""MAR (Li et al. 2024): images of continuous tokens, generated in any order, with a diffusion head.

config.py         sizes
diffusion.py      noise schedule and its respacing
network.py        plain PyTorch with the official state-dict keys: encoder, decoder, diffusion head
target_module.py  for the engine: the same network in products of joined weights
kl.py             the autoencoder KL-16, whose latents the tokens are
"""
