"""What our nodes say to each other beside Kafka's words: tagged fields that Kafka's readers skip (KIP-482).

Their numbers are far above those that Kafka gives out, one after the other from 0. What stands in them is not for this
layer to know: see `metadata.state_comparison`.
"""

from collections.abc import Mapping
from dataclasses import field, make_dataclass
from typing import Any, Final

from kio.static.constants import EntityType

from wire.protocol.api_keys import ApiKey

ANNOTATION_TAG: Final = 7001

# The first version that has tagged fields. A replica's Fetch carries the state that it has reached, and the answer of
# the leader to DescribeQuorum what it knows of the states of all.
_ANNOTATED: Final[Mapping[tuple[int, EntityType], int]] = {
    (ApiKey.FETCH, EntityType.request): 12,
    (ApiKey.DESCRIBE_QUORUM, EntityType.response): 0,
}


def extended(api_key: int, version: int, kind: EntityType, cls: type[Any]) -> type[Any]:
    """The class of a body with the field `annotation` where we add it: bytes, empty where nothing is said."""
    first = _ANNOTATED.get((api_key, kind))
    if first is None or version < first:
        return cls
    annotation: Any = field(metadata={"kafka_type": "bytes", "tag": ANNOTATION_TAG}, default=b"")
    made = make_dataclass(
        cls.__name__,
        [("annotation", bytes, annotation)],
        bases=(cls,),
        frozen=True,
        slots=True,
        kw_only=True,
    )
    made.__module__ = cls.__module__
    return made
