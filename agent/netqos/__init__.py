"""netqos keeps one node's network fair between levels L0, L1 and L2."""

__version__ = "0.1.0"
