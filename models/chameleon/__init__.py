"""Chameleon and its offspring Anole and Lumina-mGPT: one network, three prompts.

    config.py         shape of the network, ids of the tokens
    transformer.py    the network in plain PyTorch
    target_module.py  the network for the engine
    vqgan.py          the image tokenizer that they share

The one layout is that of the operator `attend`: features 2i and 2i + 1 of a query or key head turn
together, and the norms of the heads, one row per head, are in the same order.
"""
