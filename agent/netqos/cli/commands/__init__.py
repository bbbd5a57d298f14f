"""One module for each command of netqosctl; each is loaded when its command is given."""
