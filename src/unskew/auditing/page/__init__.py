"""The report of an audit, section by section."""
