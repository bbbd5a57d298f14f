"""Pure decisions: no clock, no logging, no I/O."""
