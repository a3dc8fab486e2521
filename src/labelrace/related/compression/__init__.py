"""Methods that compress the labels."""
