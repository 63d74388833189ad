"""Order of systems over time, decay of models, curves over steps."""
