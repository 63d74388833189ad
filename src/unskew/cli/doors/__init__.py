"""The eight main commands."""
