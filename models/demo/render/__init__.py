"""The demo's world: scenes, their pictures, and captions that describe them.

scene.py      the attributes of a scene; captions.py: its captions
world.py      draws a scene: sky.py, landscape.py, then subjects.py with buildings.py
paint.py      canvas, colours and noise; brush.py: shapes with light and shadow
"""
