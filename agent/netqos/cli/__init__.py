"""The commands netqosd and netqosctl."""
