"""Says in which order ids, sums and gradients travel between the cores and the owners of rows.

A host owns its rows. A core sends each owner the ids that it holds, gets the sums of their rows
back, and sends gradients. All features of one row width travel side by side, so the features are
in *exchange order*: sorted by width, otherwise in the order of the plan. Each sample of each
feature has a *position* there: the number of samples of all features before it, plus its own.
For features `a` and `b` of 2 samples each, sample 1 of `b` has position 3.
"""

from __future__ import annotations

import dataclasses
import itertools

from .plan import Plan
from .specs import FeatureSpec


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Width:
    """The features whose rows have one width.

    Attributes:
      width: of their rows.
      first: the number of the first of them in exchange order.
      stop: the number after the last of them.
      begin: the position of the first sample.
      end: the position after the last sample.
    """

    width: int
    first: int
    stop: int
    begin: int
    end: int


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """What travels between the cores and the owners of one plan.

    Attributes:
      plan: the plan.
      features: in exchange order.
      samples: of each feature on one core.
      bounds: the position of the first sample of each feature, and the number of all samples.
      widths: in ascending order.
      owners: the plan of each host that holds rows, by host.
    """

    plan: Plan
    features: tuple[FeatureSpec, ...]
    samples: tuple[int, ...]
    bounds: tuple[int, ...]
    widths: tuple[Width, ...]
    owners: dict[int, Plan]

    @classmethod
    def of(cls, plan: Plan) -> Exchange:
        """Returns what travels for a plan."""
        features = plan.features_by_width()
        samples = [plan.num_samples(feature) for feature in features]
        bounds = [0, *itertools.accumulate(samples)]
        widths = []
        for width, group in itertools.groupby(
                range(len(features)), lambda number: plan.table(features[number].table).dimension):
            numbers = list(group)
            widths.append(Width(width=width, first=numbers[0], stop=numbers[-1] + 1,
                                begin=bounds[numbers[0]], end=bounds[numbers[-1] + 1]))
        owners = {host: own for host in range(plan.topology.num_hosts)
                  if (own := plan.plan_of_owner(host)) is not None}
        return cls(plan=plan, features=tuple(features), samples=tuple(samples),
                   bounds=tuple(bounds), widths=tuple(widths), owners=owners)

    @property
    def is_weighted(self) -> bool:
        """Whether some feature has weights."""
        return any(feature.weight_feature for feature in self.features)
