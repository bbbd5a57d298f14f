"""Facts about this host and small effects on it, below injectable roots; one file per outside system."""
