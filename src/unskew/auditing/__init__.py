"""Audits of a protocol itself: what needs to run plans on data whose truth is known."""
