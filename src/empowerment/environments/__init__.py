"""The named worlds as Gymnasium environments; importing this registers them."""

from empowerment.environments.continuous import WorldEnv
from empowerment.environments.discrete import GridEnv
from empowerment.environments.registration import ENVIRONMENTS, register

register()

__all__ = ["ENVIRONMENTS", "GridEnv", "WorldEnv", "register"]
