"""What a test's process and the host of its cluster say to each other: a JSON object a line, each answered by one.

A command that fails is answered with the key `error`. The end of the host's input stops the cluster.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Self

FIRST_BROKER_ID: Final = 1
FIRST_CONTROLLER_ID: Final = 101


@dataclass(frozen=True, slots=True)
class ClusterSpec:
    """What cluster is to run. `configs` are keys of a node's config, for all nodes."""

    folder: str
    brokers: int = 1
    controllers: int = 1
    configs: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def of_json(cls, text: str) -> Self:
        return cls(**json.loads(text))

    @property
    def broker_ids(self) -> tuple[int, ...]:
        return tuple(range(FIRST_BROKER_ID, FIRST_BROKER_ID + self.brokers))

    @property
    def controller_ids(self) -> tuple[int, ...]:
        return tuple(range(FIRST_CONTROLLER_ID, FIRST_CONTROLLER_ID + self.controllers))
