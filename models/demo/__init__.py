"""The demo model: a small text-to-image model trained from scratch on rendered landscapes."""
