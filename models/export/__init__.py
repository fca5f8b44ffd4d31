"""Turns official checkpoints into bundles: python -m models.export FAMILY ..."""
