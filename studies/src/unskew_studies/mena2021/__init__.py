"""mena2021: popularity bias in metrics of false positives."""
