"""The diagnosis of splits: what leaks from test to training, what drifts, what the data are."""
