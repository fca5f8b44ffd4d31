"""Janus-Pro: a Llama with a table and a head of its own for image codes.

config.py         sizes
network.py        plain PyTorch: what the official program computes
target_module.py  for the engine: the common decoder with Janus's table and head
"""
