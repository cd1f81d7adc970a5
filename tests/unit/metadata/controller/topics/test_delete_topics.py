"""DeleteTopics, through the controller."""

from typing import Any
from uuid import UUID

from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.protocol.api_keys import ApiKey
from kquorum.wire.uuids import ZERO_UUID
from tests.support.api_calls import Values
from tests.support.controller_world import World, topic
from tests.support.metadata.topic_worlds import limit_mutations, ready


def by_name_only(name: str) -> dict[str, Any]:
    return {"name": name, "topic_id": None}


class TestDelete:
    def test_by_name_with_configs_and_again(self) -> None:
        world = ready()
        configs = [{"name": "retention.ms", "value": "1"}]
        first = world.create(topic("a", configs=configs))["a"].topic_id
        answer = world.delete("a")["a"]
        assert (answer.error_code, answer.topic_id) == (ErrorCode.none, first)
        image = world.controller.committed_image
        assert image.topics.is_empty
        assert image.configs.is_empty
        assert world.delete("a")["a"].error_code is ErrorCode.unknown_topic_or_partition
        assert world.create({"name": "a"})["a"].topic_id != first

    def test_by_id(self) -> None:
        world = ready()
        topic_id = world.create({"name": "a"})["a"].topic_id
        entry = self.ask(world, {"name": None, "topic_id": topic_id})[0]
        assert (entry.error_code, entry.name) == (ErrorCode.none, "a")
        entry = self.ask(world, {"name": None, "topic_id": topic_id})[0]
        assert (entry.error_code, entry.name) == (ErrorCode.unknown_topic_id, None)

    def test_ambiguous_requests_delete_nothing(self) -> None:
        world = ready()
        topic_id = world.create({"name": "a"})["a"].topic_id
        by_name, by_id = {"name": "a", "topic_id": None}, {"name": None, "topic_id": topic_id}
        for asked in (
            [by_name, by_id],
            [by_name, by_name],
            [by_id, by_id],
            [{"name": "a", "topic_id": topic_id}],
            [{"name": None, "topic_id": None}],
        ):
            errors = {entry.error_code for entry in self.ask(world, *asked)}
            assert errors == {ErrorCode.invalid_request}, asked
        assert "a" in world.controller.committed_image.topics.by_name

    def test_old_request_by_names(self) -> None:
        world = ready()
        world.create({"name": "a"})
        answer = world.ask(ApiKey.DELETE_TOPICS, 3, topic_names=("a", "b"), timeout=1)
        errors = {entry.name: entry.error_code for entry in answer.responses}
        assert errors == {"a": ErrorCode.none, "b": ErrorCode.unknown_topic_or_partition}

    def test_switched_off(self) -> None:
        world = ready(delete_topic_enable=False)
        world.create({"name": "a"})
        assert world.delete("a")["a"].error_code is ErrorCode.topic_deletion_disabled
        for version, error in ((3, ErrorCode.topic_deletion_disabled), (2, ErrorCode.invalid_request)):
            answer = world.ask(ApiKey.DELETE_TOPICS, version, topic_names=("a",), timeout=1)
            assert answer.responses[0].error_code is error

    def test_every_way_to_ask_wrongly_has_its_words(self) -> None:
        world = ready()
        world.create({"name": "foo"}, {"name": "bar"}, {"name": "good"})
        ids = {name: topic.id for name, topic in world.controller.image.topics.by_name.items()}
        unknown = UUID(int=0xABC)
        entries = self.ask(
            world,
            {"name": None, "topic_id": None},
            {"name": "foo", "topic_id": ids["foo"]},
            {"name": "bar", "topic_id": None},
            {"name": None, "topic_id": ids["bar"]},
            {"name": "quux", "topic_id": None},
            {"name": "quux", "topic_id": None},
            {"name": None, "topic_id": unknown},
            {"name": None, "topic_id": unknown},
            {"name": "good", "topic_id": None},
        )
        told = {(entry.name, entry.topic_id): entry.error_message for entry in entries}
        assert told == {
            (None, ZERO_UUID): "Neither topic name nor id were specified.",
            ("foo", ids["foo"]): "You may not specify both topic name and topic id.",
            ("bar", ids["bar"]): "The provided topic name maps to an ID that was already supplied.",
            ("quux", ZERO_UUID): "Duplicate topic name.",
            (None, unknown): "Duplicate topic id.",
            ("good", ids["good"]): None,
        }
        assert len(entries) == len(told)
        assert set(world.controller.committed_image.topics.by_name) == {"foo", "bar"}

    def test_name_given_twice_does_not_save_the_id(self) -> None:
        world = ready()
        topic_id = world.create({"name": "a"})["a"].topic_id
        by_name = {"name": "a", "topic_id": None}
        entries = self.ask(world, by_name, by_name, {"name": None, "topic_id": topic_id})
        assert {entry.error_code for entry in entries} == {ErrorCode.invalid_request}
        assert "a" in world.controller.committed_image.topics.by_name

    def test_quota(self) -> None:
        world = ready()
        world.create(topic("a", num_partitions=50), {"name": "b"}, {"name": "c"})
        limit_mutations(world)
        entries = {entry.name: entry for entry in self.ask(world, *map(by_name_only, "ab"))}
        assert entries["a"].error_code is ErrorCode.none
        assert entries["b"].error_code is ErrorCode.throttling_quota_exceeded
        old = world.ask(ApiKey.DELETE_TOPICS, 4, topic_names=("c",), timeout=1)
        assert old.responses[0].error_code is ErrorCode.none
        assert set(world.controller.image.topics.by_name) == {"b"}

    @staticmethod
    def ask(world: World, *topics: dict[str, Any]) -> list[Values]:
        responses: list[Values] = world.ask(ApiKey.DELETE_TOPICS, 6, topics=topics, timeout=1).responses
        return responses
