"""Training and test ratings: every way to split, sub-samples and interventions."""
