"""valcarce2018: which metrics and cutoffs are robust, and which tell systems apart."""
