"""Exporter of Tar's language model."""
