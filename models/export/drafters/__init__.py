"""Exporters of drafters: each adds one to a bundle that is there.

attach.py       what all of them share: the bundle's edit, the target's head, recorded calls
files.py        drafters' files, and what must fit the bundle
eagle.py, eagle3.py, flash.py, heads.py  published drafters and our own
draft_model.py  the target of another bundle
"""
