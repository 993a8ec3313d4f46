"""Sweeps: grids of runs on the cores of this machine or of a cluster.

Workers import their job from here before they limit their threads, so nothing else is imported.
"""
