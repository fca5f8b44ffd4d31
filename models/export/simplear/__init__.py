"""Exporter of SimpleAR."""
