"""SimpleAR: a Qwen2 whose vocabulary has image codes behind the text.

config.py         sizes
network.py        plain PyTorch: what the official program computes
target_module.py  for the engine: the common decoder with biases, its head cut to the ids that are sampled
"""
