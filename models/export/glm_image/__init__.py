"""Exporter of GLM-Image's autoregressive stage."""
