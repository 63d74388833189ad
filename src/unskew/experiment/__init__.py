"""Experiments: a plan is declared once, run in tasks, and kept in a store; same bits always."""
