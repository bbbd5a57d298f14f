"""Text from files and annotations -> frozen inputs, with every problem reported at once; pure."""
