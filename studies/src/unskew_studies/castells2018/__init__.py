"""castells2018: which experiments are fair, and the null experiment that shows it."""
