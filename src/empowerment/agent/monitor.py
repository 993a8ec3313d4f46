"""From the held-out data of a model to the monitor of its controller."""

from collections.abc import Iterable

import numpy as np

from empowerment.controller import Bundle
from empowerment.controller.calibration import with_monitor
from empowerment.controller.network_arrays import add_network
from empowerment.data import Episode
from empowerment.model import DVBF


def monitored(bundle: Bundle, model: DVBF, episodes: Iterable[Episode]) -> Bundle:
    """Add a monitor to the bundle of a policy, if there are data enough to calibrate one.

    Args:
        bundle: The bundle of a policy whose filter is that of the model.
        model: The model.
        episodes: Episodes that the model was not trained on.
    """
    networks, arrays = {}, {}
    add_network(networks, arrays, "decoder", model.decoder)
    single = {name: np.asarray(array, np.float32) for name, array in arrays.items()}
    pairs = [(episode.observations, episode.actions) for episode in episodes]
    return with_monitor(bundle, networks["decoder"], single, pairs)
