"""What this host can do and what is in the way: one check a line, each with its next step. Nothing is changed."""
