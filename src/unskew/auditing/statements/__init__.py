"""What an audit says: statements, their evidence and their rules."""
