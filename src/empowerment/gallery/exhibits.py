"""What is in the gallery: controllers, and what is known about each; needs no JAX."""

from dataclasses import dataclass
from pathlib import Path

from empowerment.controller import Bundle, read_bundle
from empowerment.files import read_json

_HERE = Path(__file__).parent
_FACTS = "facts.json"

EXHIBITS = tuple(sorted(path.parent.name for path in _HERE.glob(f"*/{_FACTS}")))
"""Names of all controllers, which are those of the presets they were trained by."""


@dataclass(frozen=True)
class _Facts:
    """The file beside a controller.

    Attributes:
        title: What it does, in a few words.
        film: What the film shows.
        command: The command that trained it.
        seed: Random seed of the training.
        result: What is known about this preset over seeds, from docs/results.md.
        section: The section of docs/results.md that says so.
    """

    title: str
    film: str
    command: str
    seed: int
    result: str
    section: str


@dataclass(frozen=True)
class Exhibit(_Facts):
    """A controller in the gallery.

    Attributes:
        name: Its name.
        bundle: Policy, filter if there is one, and fitted bound.
    """

    name: str
    bundle: Bundle

    @property
    def environment(self) -> str:
        """Gymnasium id of the environment that it was trained for."""
        environment = self.bundle.description.environment
        assert environment is not None, "every controller of the gallery has an environment"
        return environment


def find_exhibit(name: str) -> Exhibit:
    """Read a controller of the gallery; its files are checked like those of any other.

    Args:
        name: One of `EXHIBITS`.

    Raises:
        ValueError: If there is none of this name, or a file is damaged.
    """
    if name not in EXHIBITS:
        raise ValueError(
            f"Expected one of the gallery, {', '.join(EXHIBITS)}; got {name}. Other systems have "
            "to be trained first: see empower train --help."
        )
    facts = read_json(_HERE / name / _FACTS, _Facts, what="the facts of a controller")
    return Exhibit(**vars(facts), name=name, bundle=read_bundle(_HERE / name))
