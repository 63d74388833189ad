"""Audits of given lists."""
