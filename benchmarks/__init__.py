"""Measurements: what `make bench` and `make reproduce` run."""
