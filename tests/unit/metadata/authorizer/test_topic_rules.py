"""CreateTopics, CreatePartitions, DeleteTopics: each topic is asked about alone, and refused alone."""

from typing import Any

import pytest

from kquorum.metadata.authorizer.codes import Operation
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.protocol.api_keys import ApiKey
from tests.support.acl_worlds import ADMIN, DENY, PREFIXED, acl, creation
from tests.support.controller_world import topic
from tests.support.metadata.listener_world import ListenerWorld

NONE, FAILED = ErrorCode.none, ErrorCode.topic_authorization_failed
UNKNOWN = ErrorCode.unknown_topic_or_partition


def errors(answer: Any) -> dict[Any, ErrorCode]:
    entries = getattr(answer, "topics", None) or getattr(answer, "responses", None) or answer.results
    return {entry.name: entry.error_code for entry in entries}


@pytest.mark.parametrize("forwarded", [False, True])
def test_topics_are_created_one_by_one(forwarded: bool) -> None:
    world = ListenerWorld().allow(acl(Operation.CREATE, "mine-", pattern_type=PREFIXED))
    ask = world.forward if forwarded else world.ask
    answer = ask(ApiKey.CREATE_TOPICS, creation("mine-1", "theirs", "mine-2"))
    assert errors(answer) == {"mine-1": NONE, "theirs": FAILED, "mine-2": NONE}
    assert sorted(world.world.controller.image.topics.by_name) == ["mine-1", "mine-2"]
    # The response has configs only for clients with DESCRIBE_CONFIGS.
    told = {entry.name: entry for entry in answer.topics}["mine-1"]
    assert (told.num_partitions, told.configs, told.topic_config_error_code) == (-1, (), int(FAILED))


def test_with_describe_configs_a_client_gets_the_configs() -> None:
    world = ListenerWorld().allow(
        acl(Operation.CREATE), acl(Operation.DESCRIBE_CONFIGS, "a"), acl(Operation.DESCRIBE, "*")
    )
    answer = world.ask(ApiKey.CREATE_TOPICS, creation("a", "b"))
    told = {entry.name: entry for entry in answer.topics}
    assert told["a"].configs
    assert told["a"].num_partitions == 1
    assert told["b"].num_partitions == -1


def test_create_on_the_cluster_is_for_all_topics_even_those_denied_by_name() -> None:
    """Kafka asks for the cluster first, and then for nothing more."""
    world = ListenerWorld().allow(acl(Operation.CREATE), acl(Operation.CREATE, "b", permission_type=DENY))
    assert errors(world.ask(ApiKey.CREATE_TOPICS, creation("a", "b"))) == {"a": NONE, "b": NONE}
    assert not world.lines


def test_a_name_given_twice_is_a_duplicate_for_every_client() -> None:
    answer = ListenerWorld().ask(ApiKey.CREATE_TOPICS, creation("a", "a", "__cluster_metadata"))
    assert errors(answer) == {
        "a": ErrorCode.invalid_request,
        "__cluster_metadata": ErrorCode.invalid_request,
    }


def test_partitions_are_added_by_who_may_alter() -> None:
    world = ListenerWorld().allow(acl(Operation.ALTER, "mine"))
    world.world.create(*({"name": name} for name in ("mine", "theirs")))
    more = [{"name": name, "count": 2, "assignments": None} for name in ("mine", "theirs", "missing")]
    answer = world.forward(
        ApiKey.CREATE_PARTITIONS, {"topics": more, "timeout": 1000, "validate_only": False}
    )
    assert errors(answer) == {"mine": NONE, "theirs": FAILED, "missing": FAILED}
    assert len(world.world.controller.image.topics.by_name["theirs"].partitions) == 1


def deletion(*named: Any) -> dict[str, Any]:
    topics = [
        {"name": each, "topic_id": None} if isinstance(each, str) else {"name": None, "topic_id": each}
        for each in named
    ]
    return {"topics": topics, "timeout": 1000}


def world_of_three() -> ListenerWorld:
    world = ListenerWorld().allow(
        acl(Operation.DELETE, "mine"), acl(Operation.DESCRIBE, "seen"), acl(Operation.DESCRIBE, "missing")
    )
    world.world.create(*({"name": name} for name in ("mine", "seen", "hidden")))
    return world


def test_topics_are_deleted_by_name_by_who_may() -> None:
    world = world_of_three()
    answer = world.forward(
        ApiKey.DELETE_TOPICS, deletion("mine", "seen", "hidden", "missing", "hidden-missing")
    )
    assert errors(answer) == {
        "mine": NONE,
        "seen": FAILED,
        "hidden": FAILED,
        "missing": UNKNOWN,
        # As if it were there.
        "hidden-missing": FAILED,
    }
    assert {entry.name: entry.topic_id for entry in answer.responses}["seen"] is None
    assert sorted(world.world.controller.image.topics.by_name) == ["hidden", "seen"]


def test_topics_are_deleted_by_id_and_names_need_describe() -> None:
    world = world_of_three()
    ids = {name: each.id for name, each in world.world.controller.image.topics.by_name.items()}
    answer = world.ask(ApiKey.DELETE_TOPICS, deletion(*ids.values()))
    told = {entry.topic_id: (entry.name, entry.error_code) for entry in answer.responses}
    assert told == {
        ids["mine"]: ("mine", NONE),
        ids["seen"]: ("seen", FAILED),
        ids["hidden"]: (None, FAILED),
    }


@pytest.mark.parametrize("version", [1, 3, 5])
def test_older_deletions_are_by_name(version: int) -> None:
    values = {"topic_names": ["mine", "hidden"], "timeout": 1000}
    answer = world_of_three().ask(ApiKey.DELETE_TOPICS, values, version)
    assert errors(answer) == {"mine": NONE, "hidden": FAILED}


def test_a_topic_whose_creation_is_not_yet_committed_is_guarded_too() -> None:
    world = ListenerWorld().allow(acl(Operation.DESCRIBE, "*"))
    world.world.send(ApiKey.CREATE_TOPICS, 7, topics=[topic("new")], timeout=1000)
    topic_id = world.world.controller.image.topics.by_name["new"].id
    assert "new" not in world.world.controller.committed_image.topics.by_name
    for named in ("new", topic_id):
        assert list(errors(world.ask(ApiKey.DELETE_TOPICS, deletion(named))).values()) == [FAILED]
    assert "new" in world.world.controller.image.topics.by_name


def test_delete_on_the_cluster_allows_every_topic() -> None:
    world = world_of_three().allow_on_cluster(Operation.DELETE)
    answer = world.ask(ApiKey.DELETE_TOPICS, deletion("hidden", "hidden-missing"))
    assert errors(answer) == {"hidden": NONE, "hidden-missing": UNKNOWN}


def test_super_users_may_do_it_all() -> None:
    world = world_of_three()
    answer = world.forward(ApiKey.DELETE_TOPICS, deletion("hidden", "seen"), principal=ADMIN)
    assert errors(answer) == {"hidden": NONE, "seen": NONE}


def test_what_names_a_topic_in_no_proper_way_is_refused_as_ever() -> None:
    values = {"topics": [{"name": None, "topic_id": None}], "timeout": 1000}
    answer = ListenerWorld().ask(ApiKey.DELETE_TOPICS, values)
    assert [entry.error_code for entry in answer.responses] == [ErrorCode.invalid_request]
