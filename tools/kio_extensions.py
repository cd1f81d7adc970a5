"""What our nodes say to each other beside Kafka's words: tagged fields that Kafka's readers skip (KIP-482).

Their numbers are far above those that Kafka gives out, one after the other from 0. What stands in an annotation is not
for this layer to know: see `metadata.state_hash.comparison`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, make_dataclass
from typing import Any, Final

from kio.static.constants import EntityType

from kquorum.wire.protocol.api_keys import ApiKey

ANNOTATION_TAG: Final = 7001
SESSION_TAG: Final = 7002


@dataclass(frozen=True, slots=True, kw_only=True)
class _Extension:
    """A field that we add; `first_version` is the first that has tagged fields, and `default` says nothing."""

    first_version: int
    name: str
    type: type[Any]
    kafka_type: str
    tag: int
    default: object


def _annotation(first_version: int) -> _Extension:
    return _Extension(
        first_version=first_version,
        name="annotation",
        type=bytes,
        kafka_type="bytes",
        tag=ANNOTATION_TAG,
        default=b"",
    )


# A replica's Fetch carries the state that it has reached, and the answer of the leader to DescribeQuorum what it knows
# of the states of all. A controller that refuses a broker because the session of the broker's previous process is not
# over says when it will be; -1 in every other answer.
_EXTENSIONS: Final[Mapping[tuple[int, EntityType], _Extension]] = {
    (ApiKey.FETCH, EntityType.request): _annotation(12),
    (ApiKey.DESCRIBE_QUORUM, EntityType.response): _annotation(0),
    (ApiKey.BROKER_REGISTRATION, EntityType.response): _Extension(
        first_version=0,
        name="session_ends_in_ms",
        type=int,
        kafka_type="int32",
        tag=SESSION_TAG,
        default=-1,
    ),
}


def extended(api_key: int, version: int, kind: EntityType, cls: type[Any]) -> type[Any]:
    """The class of a body with the field that we add to it, if any."""
    extension = _EXTENSIONS.get((api_key, kind))
    if extension is None or version < extension.first_version:
        return cls
    added: Any = field(
        metadata={"kafka_type": extension.kafka_type, "tag": extension.tag}, default=extension.default
    )
    made = make_dataclass(
        cls.__name__,
        [(extension.name, extension.type, added)],
        bases=(cls,),
        frozen=True,
        slots=True,
        kw_only=True,
    )
    made.__module__ = cls.__module__
    return made
