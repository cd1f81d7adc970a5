"""Asking the controller to alter configs."""

from typing import Any

from kquorum.metadata.controller.configs.alter_configs import APPEND, DELETE, SET, SUBTRACT
from kquorum.metadata.image.configs import ConfigResource
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.metadata_records.configs import ConfigRecord
from kquorum.wire.protocol.api_keys import ApiKey
from tests.support.controller_world import World, topic

__all__ = ("APPEND", "DELETE", "SET", "SUBTRACT")

INCREMENTAL, LEGACY = ApiKey.INCREMENTAL_ALTER_CONFIGS, ApiKey.ALTER_CONFIGS
Asked = dict[str, Any]


def changes(kind: int, name: str, *operations: tuple[str, int, str | None]) -> Asked:
    configs = [{"name": key, "config_operation": each, "value": value} for key, each, value in operations]
    return {"resource_type": kind, "resource_name": name, "configs": configs}


def all_of(kind: int, name: str, **configs: str | None) -> Asked:
    listed = [{"name": key.replace("_", "."), "value": value} for key, value in configs.items()]
    return {"resource_type": kind, "resource_name": name, "configs": listed}


def alter(
    world: World, *asked: Asked, api_key: ApiKey = INCREMENTAL, version: int = 1, validate_only: bool = False
) -> list[tuple[ErrorCode, str | None]]:
    answer = world.ask(api_key, version, resources=list(asked), validate_only=validate_only)
    responses = answer.responses
    assert [(each.resource_type, each.resource_name) for each in responses] == [
        (each["resource_type"], each["resource_name"]) for each in asked
    ]
    return [(each.error_code, each.error_message) for each in responses]


def configs_of(world: World, kind: int, name: str) -> dict[str, str]:
    return dict(world.controller.committed_image.configs.resources.get(ConfigResource(kind, name), {}))


def written(world: World, start: int) -> list[tuple[str, str, str | None]]:
    records = world.raft.records(start)
    return [(each.resource_name, each.name, each.value) for each in records if isinstance(each, ConfigRecord)]


NONE = (ErrorCode.none, None)


def world_of_topics() -> World:
    world = World().lead().add_brokers(1, 2)
    world.create(topic("a"), topic("b"))
    return world
