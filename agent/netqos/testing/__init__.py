"""Shipped for plugin authors and the project's own tests: fakes, contract suite, clock, network rig."""
