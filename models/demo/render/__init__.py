"""The demo's world: scenes, their images, and captions that describe them.

vocabulary.py  all that the demo knows, and the words for it
scene.py       the attributes of a scene, and what is kept from training; captions.py: its captions
world.py       draws a scene: sky.py, landscape.py, then subjects.py and buildings.py, on canvas.py
"""
