"""Agreement of orders of systems, robustness and power."""
