"""Dynamic configs: what was set at run time, by resource."""

from dataclasses import dataclass, field
from typing import NamedTuple

from immutables import Map

from kquorum.wire.metadata_records.configs import ConfigRecord

TOPIC = 2
BROKER = 4
BROKER_LOGGER = 8
CLIENT_METRICS = 16
GROUP = 32
CLUSTER_DEFAULT = ""


class ConfigResource(NamedTuple):
    """`type`: 2 topic, 4 broker (name "" is the default of all brokers), 16 client metrics, 32 group."""

    type: int
    name: str


@dataclass(frozen=True, slots=True)
class ConfigsImage:
    """Invariant: no resource is empty."""

    resources: Map[ConfigResource, Map[str, str]] = field(default_factory=Map)

    @property
    def is_empty(self) -> bool:
        return not self.resources

    def value(self, resource: ConfigResource, key: str) -> str | None:
        values = self.resources.get(resource)
        return None if values is None else values.get(key)


class ConfigsDelta:
    def __init__(self, image: ConfigsImage) -> None:
        self.image = image
        self.changed: set[ConfigResource] = set()

    def after(self, earlier: "ConfigsDelta | None") -> "ConfigsDelta":
        """This delta with the changes of the one before it."""
        if earlier is not None:
            self.changed |= earlier.changed
        return self

    def replay_config(self, record: ConfigRecord) -> None:
        """A null value takes the key off; taking off one which is not set is no error."""
        resource = ConfigResource(record.resource_type, record.resource_name)
        values: Map[str, str] = self.image.resources.get(resource, Map())
        if record.value is not None:
            values = values.set(record.name, record.value)
        elif record.name in values:
            values = values.delete(record.name)
        self._put(resource, values)

    def remove_topic(self, name: str) -> None:
        """A topic's configs go with it, without records of their own."""
        resource = ConfigResource(TOPIC, name)
        if resource in self.image.resources:
            self._put(resource, Map())

    def become(self, target: ConfigsImage) -> None:
        resources = set(self.image.resources) | set(target.resources)
        self.changed |= {
            each for each in resources if self.image.resources.get(each) != target.resources.get(each)
        }
        self.image = target

    def _put(self, resource: ConfigResource, values: Map[str, str]) -> None:
        resources = self.image.resources
        self.changed.add(resource)
        if values:
            self.image = ConfigsImage(resources.set(resource, values))
        elif resource in resources:
            self.image = ConfigsImage(resources.delete(resource))
