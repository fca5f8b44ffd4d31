"""Exporter of Janus-Pro."""
