"""What is known about particular systems, one file each; a new system is one more file here."""

from empowerment.systems import ball, balls, biped, cart_pole, pendulum, rods
from empowerment.systems.base import (
    Study as Study,
    System as System,
    evaluated as evaluated,
)

_SYSTEMS = {
    name: system
    for module in (pendulum, ball, balls, biped, rods, cart_pole)
    for system in module.SYSTEMS
    for name in system.environments
}


def system_of(environment: str | None) -> System:
    """Return what is known about an environment; an empty record if nothing is."""
    return _SYSTEMS.get(environment or "", System())
