"""Exporter of Emu3-Gen."""
