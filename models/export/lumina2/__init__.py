"""Exporter of Lumina-mGPT 2.0, whose network and prompts are Chameleon's."""
