"""Benchmarks: timings for `make bench`, and the tables of docs/results.md for `make reproduce`."""
