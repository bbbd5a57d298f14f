"""The running daemon: state cells, reconciler, fast loop, supervisor."""
