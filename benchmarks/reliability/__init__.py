"""The self-test of the audit: worlds of which everything is known."""
