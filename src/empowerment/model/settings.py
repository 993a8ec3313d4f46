"""Hyperparameters of a model, validated in one place."""

from dataclasses import dataclass

from empowerment.settings import check_at_least, check_positive


@dataclass(frozen=True)
class ModelSettings:
    """Hyperparameters of a model and its training."""

    latent_size: int = 0
    """Axes of the latent state; 0 for twice the observed columns and two more, at most 32."""

    width: int = 128
    """Width of the hidden layers of all networks of the model."""

    depth: int = 1
    """Number of hidden layers of all networks of the model."""

    num_initial: int = 1
    """Number of observations from which the first state is inferred."""

    as_published: bool = False
    """Use the activations, scales and transition printed in the paper."""

    outlier_probability: float = 0.01
    """Outlier probability of the contaminated-Gaussian likelihood used in training, for values
    that nobody could predict, as upon a contact. 0 suits smooth motion, and many columns that are
    nearly always predictable."""

    window: int = 20
    """Number of observations in a training sequence."""

    absorbing_weight: float | None = None
    """Weight in the training loss of rows past the end of a terminated episode, where the last
    observation stays as it is; 1 counts them like recorded rows, 0 not at all. By default 1, or
    less where episodes are so short that they would count for more than all recorded rows."""

    updates: int = 3000
    """Maximal number of updates; training stops early by validation."""

    batch_size: int = 128
    """Number of sequences in an update."""

    learning_rate: float = 3e-3
    """Learning rate, before it decays to zero over the second half."""

    def check(self) -> None:
        """Raise a `ValueError` if the settings cannot be."""
        check_at_least(self, latent_size=0, width=1, depth=1, num_initial=1)
        check_at_least(self, window=self.num_initial + 1, updates=1, batch_size=1)
        if not 0 <= self.outlier_probability < 1:
            raise ValueError(
                "Expected outlier_probability to be at least 0 and less than 1; got "
                f"{self.outlier_probability}."
            )
        weight = self.absorbing_weight
        if weight is not None and not 0 <= weight < float("inf"):
            raise ValueError(
                f"Expected absorbing_weight to be at least 0 and finite; got {weight}."
            )
        check_positive(self, "learning_rate")
