"""Empowerment."""
