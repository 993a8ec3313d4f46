"""Channels: the variational estimate of empowerment."""

from empowerment.channel.base import (
    AbstractChannel as AbstractChannel,
    Estimate as Estimate,
    Inputs as Inputs,
    fit_inputs as fit_inputs,
)
from empowerment.channel.bound import (
    Channel as Channel,
    information_bound as information_bound,
)
from empowerment.channel.certificate import (
    CONFIDENCE as CONFIDENCE,
    Interval as Interval,
    certify as certify,
    certify_at as certify_at,
    lattice_shape as lattice_shape,
    refusal as refusal,
)
from empowerment.channel.choice import (
    channel_like as channel_like,
    make_channel as make_channel,
)
from empowerment.channel.codebook import Codebook as Codebook
from empowerment.channel.evaluation import (
    NEAR_CEILING as NEAR_CEILING,
    ceiling as ceiling,
    empowerment as empowerment,
    empowerment_at as empowerment_at,
    is_at_ceiling as is_at_ceiling,
    precise_empowerment_at as precise_empowerment_at,
)
from empowerment.channel.families import FAMILIES as FAMILIES
from empowerment.channel.linearised import Linearised as Linearised
from empowerment.channel.plan_length import plan_length as plan_length
from empowerment.channel.tabular import train_discrete as train_discrete
from empowerment.channel.training import (
    sample_states as sample_states,
    train_channel as train_channel,
)
