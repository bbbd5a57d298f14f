"""Frozen values that the whole project speaks in; no behaviour beyond arithmetic and validation."""
