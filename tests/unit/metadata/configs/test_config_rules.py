"""Single changes of configs, against what Kafka 4.3.1's own controller answered to them (recorded, one a line)."""

import json
from pathlib import Path
from typing import Any

import pytest

from kquorum.metadata.configs.rules import check_broker_configs
from kquorum.metadata.configs.validators import InvalidConfigError, InvalidConfigRequestError
from kquorum.metadata.controller.config import ControllerConfig
from kquorum.metadata.image.configs import ConfigResource
from kquorum.snapshots.bootstrap import bootstrap_records
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.metadata_records.configs import ConfigRecord
from kquorum.wire.protocol.api_keys import ApiKey
from tests.support.controller_world import World, topic

BROKER = 4
LINES = (Path(__file__).parent / "recorded_config_answers.jsonl").read_text().splitlines()
RECORDED: list[dict[str, Any]] = [json.loads(line) for line in LINES]


def title(case: dict[str, Any]) -> str:
    return f"{case['type']}-{case.get('operations', case.get('configs'))}"


@pytest.mark.parametrize("case", [case for case in RECORDED if "operations" in case], ids=title)
def test_as_kafka_answers(case: dict[str, Any]) -> None:
    resource = ConfigResource(case["type"], case["name"])
    # Another version of Kafka may have written values that can no longer be set.
    before = [
        ConfigRecord(resource_type=resource.type, resource_name=resource.name, name=name, value=value)
        for name, value in case.get("existing", {}).items()
    ]
    config = ControllerConfig(
        node_configs=case.get("static", {}), bootstrap_records=(*bootstrap_records(), *before)
    )
    world = World(config).lead().add_brokers(1)
    world.create(topic("a"))
    start = world.raft.log_end_offset
    configs = [
        {"name": name, "config_operation": kind, "value": value} for name, kind, value in case["operations"]
    ]
    asked = {"resource_type": resource.type, "resource_name": resource.name, "configs": configs}
    answer = world.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, resources=[asked], validate_only=False)
    (found,) = answer.responses
    assert (found.error_code, found.error_message) == (ErrorCode(case["code"]), case["words"])
    written = [
        [each.name, each.value] for each in world.raft.records(start) if isinstance(each, ConfigRecord)
    ]
    assert written == case["records"]


@pytest.mark.parametrize("case", [case for case in RECORDED if "operations" not in case], ids=title)
def test_brokers_configs_as_kafka_checks_them(case: dict[str, Any]) -> None:
    def check() -> None:
        check_broker_configs(case["configs"], is_cluster_default=not case["name"])

    if case["words"] is None:
        check()
        return
    with pytest.raises((InvalidConfigError, InvalidConfigRequestError)) as refused:
        check()
    assert str(refused.value) == case["words"]
