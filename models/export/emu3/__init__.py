"""Exporter of Emu3-Gen and Emu3.5."""
