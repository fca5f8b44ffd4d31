"""Distillation of small targets that draft for a bundle's own (DistillSpec)."""
