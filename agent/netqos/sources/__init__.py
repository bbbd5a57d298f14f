"""Where inputs come from: each source delivers whole snapshots."""
