"""EAGLE drafters: one decoder layer that predicts the target's next features (Li et al. 2024).

The drafter reads the target's feature of token i (the hidden state after the final norm) together
with the embedding of token i + 1 and predicts the feature of token i + 1; the target's own head
turns that into a distribution of token i + 2. To draft further, its prediction takes the place of
the target's feature.

    config.py    sizes and options, also of the published LlamaGen, Anole and Lumina-mGPT drafters
    drafter.py   the model in plain PyTorch, weights named as in the published checkpoints
    module.py    the model for the engine
    eagle3.py, eagle3_module.py  the same of EAGLE-3, which reads inner layers and has its own head
    features.py  a bundle's target: the sequences it is fed, its features of them
    data.py      pictures drawn by a bundle's target and its features of them
    losses.py    the objectives, and acceptance by depth
    recipes.py   what is trained on, and how long
    train.py     training for any bundle: `python -m models.eagle.train --bundle DIR ...`
"""
