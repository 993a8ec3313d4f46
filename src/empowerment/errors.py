"""Errors that callers may want to tell apart; wrong inputs raise a plain `ValueError`."""


class EmpowermentError(RuntimeError):
    """A computation failed on valid inputs."""


class DivergedError(EmpowermentError):
    """Training diverged: a diagnostic is not finite, or beyond what is possible."""


class NotConvergedError(EmpowermentError):
    """An iteration did not reach its tolerance."""
