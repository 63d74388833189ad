"""The systems of an audit, trained and judged under every design."""
