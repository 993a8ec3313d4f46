"""The policy that seeks empowered states: Algorithm 1 of the paper."""
