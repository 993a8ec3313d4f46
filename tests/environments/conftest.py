"""Environments to test, with warnings about anything as errors (as everywhere)."""

from collections.abc import Callable, Iterator
from typing import Any

import gymnasium
import pytest

from empowerment.environments import ENVIRONMENTS

Make = Callable[..., Any]


@pytest.fixture
def make() -> Iterator[Make]:
    """A maker of environments by the names of their worlds; they are closed afterwards."""
    made: list[gymnasium.Env] = []

    def make_unwrapped(name: str, **options: Any) -> Any:
        made.append(gymnasium.make(ENVIRONMENTS[name], **options))
        return made[-1].unwrapped

    yield make_unwrapped
    for env in made:
        env.close()
