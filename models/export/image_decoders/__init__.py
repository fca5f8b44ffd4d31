"""Image decoders that more than one family can have, or that come from other authors than the target.

vqgan.py    Chameleon's, out of the training framework's checkpoints (foreign_classes.py) too
movqgan.py  MoVQGAN's
cosmos.py   that of Cosmos' tokenizer
"""
