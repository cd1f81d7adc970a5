"""Controller worlds with brokers and a quota for topic requests."""

from typing import Any

from kquorum.metadata.controller.config import ControllerConfig
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.protocol.api_keys import ApiKey
from tests.support.controller_world import World


def ready(*broker_ids: int, **config: Any) -> World:
    return World(ControllerConfig(**config)).lead().add_brokers(*(broker_ids or (0, 1, 2)))


def limit_mutations(world: World) -> None:
    """One partition a second, for everybody."""
    quota = {"key": "controller_mutation_rate", "value": 1.0, "remove": False}
    entity = [{"entity_type": "user", "entity_name": None}]
    entries = [{"entity": entity, "ops": [quota]}]
    answer = world.ask(ApiKey.ALTER_CLIENT_QUOTAS, 1, entries=entries, validate_only=False)
    assert answer.entries[0].error_code is ErrorCode.none
