"""The null experiment: what the designs score where nothing is to be found."""
