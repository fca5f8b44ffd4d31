"""Exporter of MAR."""
