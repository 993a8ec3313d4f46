"""Channels: the variational estimate of empowerment."""

from empowerment.channel.base import AbstractChannel, Estimate, Inputs, fit_inputs
from empowerment.channel.bound import Channel, empowerment, information_bound
from empowerment.channel.certificate import Interval, certify
from empowerment.channel.codebook import Codebook
from empowerment.channel.evaluation import empowerment_at
from empowerment.channel.families import FAMILIES, channel_like, make_channel
from empowerment.channel.tabular import train_discrete
from empowerment.channel.training import sample_states
from empowerment.channel.training import train as train_channel

__all__ = [
    "FAMILIES",
    "AbstractChannel",
    "Channel",
    "Codebook",
    "Estimate",
    "Inputs",
    "Interval",
    "certify",
    "channel_like",
    "empowerment",
    "empowerment_at",
    "fit_inputs",
    "information_bound",
    "make_channel",
    "sample_states",
    "train_channel",
    "train_discrete",
]
