"""Target items: what a system must rank."""
