"""Channels: the variational estimate of empowerment."""

from empowerment.channel.base import AbstractChannel, Estimate, Inputs, fit_inputs
from empowerment.channel.baselines import train_discrete, train_model_free
from empowerment.channel.bound import Channel, empowerment, information_bound
from empowerment.channel.certificate import Interval, certify
from empowerment.channel.codebook import Codebook
from empowerment.channel.families import FAMILIES, make_channel
from empowerment.channel.training import DivergedError, Trained, train

__all__ = [
    "FAMILIES",
    "AbstractChannel",
    "Channel",
    "Codebook",
    "DivergedError",
    "Estimate",
    "Inputs",
    "Interval",
    "Trained",
    "certify",
    "empowerment",
    "fit_inputs",
    "information_bound",
    "make_channel",
    "train",
    "train_discrete",
    "train_model_free",
]
