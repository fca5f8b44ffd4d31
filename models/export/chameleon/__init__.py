"""Exporter of Chameleon, Anole and Lumina-mGPT."""
