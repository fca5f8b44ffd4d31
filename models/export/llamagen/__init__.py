"""Exporter of LlamaGen."""
