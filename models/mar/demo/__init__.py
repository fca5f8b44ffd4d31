"""A demo pair of continuous tokens: landscapes by subject and time of day, trained on the demo's renderings.

world.py        classes, and the data set of latents
stage.py        what the trainings share: time, checkpoints, averages
autoencoder.py  images to latents and back
warm.py        the weights that their decoder starts from
target.py       the network that generates
drafter.py      a smaller one that follows its chains
train.py        the command
evaluate.py     how good what a bundle generates is
"""
