"""The decoder that all families share, for the engine: packed weights, operators, TorchScript.

    config.py   sizes that the decoders of all families have
    layer.py    one block: attention and feed-forward part
    decoder.py  blocks between an embedding and a head: what a target is
    codes_target.py a target with the head's rows of image codes
    head.py     heads of one product or of two layers
    blocks.py   blocks in plain PyTorch
    plain.py    the whole decoder in plain PyTorch
    by_block.py a decoder prepared one block at a time, for recording large models
    rotary.py   rotations of queries and keys, by line, by grid or by axes

A family gives the sizes, its options and its weights by name; see models.llamagen.target_module,
models.chameleon.target_module and models.eagle.module. The methods of these classes are written in
what Python and the TorchScript compiler of C++ both read: the engine compiles the very same text
for bundles with random weights (src/bundle/synthetic/script.h).
"""
