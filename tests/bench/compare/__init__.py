"""`./dev bench compare`: enforcers side by side on one rig, with the same traffic. See docs/comparison.md."""
