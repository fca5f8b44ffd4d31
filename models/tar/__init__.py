"""Tar's de-tokenizer: a LlamaGen with learned positions behind the features of TA-Tok's codes.

config.py               sizes
ta_tok.py               the half of TA-Tok that makes features of codes, by its tensors' names
text_encoder_module.py  for the engine: TA-Tok's half in the place of a text encoder
target_module.py        for the engine: the common decoder with learned positions and Tar's condition
"""
