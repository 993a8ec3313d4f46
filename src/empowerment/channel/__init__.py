"""Channels: the variational estimate of empowerment."""

from empowerment.channel.base import AbstractChannel, Estimate, Inputs, fit_inputs
from empowerment.channel.bound import Channel, empowerment, information_bound
from empowerment.channel.codebook import Codebook
from empowerment.channel.training import DivergedError, Trained, train

__all__ = [
    "AbstractChannel",
    "Channel",
    "Codebook",
    "DivergedError",
    "Estimate",
    "Inputs",
    "Trained",
    "empowerment",
    "fit_inputs",
    "information_bound",
    "train",
]
