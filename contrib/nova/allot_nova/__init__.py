"""Allotment's extension of Nova."""
