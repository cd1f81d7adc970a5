"""FindCoordinator: the leader of the group's partition, as soon as there is one; and the rights of every group API."""

from dataclasses import replace
from typing import Any

import pytest

from kquorum.broker.apis.registry import BROKER_APIS
from kquorum.broker.coordinators.partitioning import OFFSETS_TOPIC
from kquorum.metadata.authorizer.authorizer import Authorizer, AuthorizerConfig
from kquorum.metadata.authorizer.denial_log import DenialLog
from kquorum.metadata.authorizer.gate import RequestAuthorizer
from kquorum.wire.message_codec import encode
from kquorum.wire.messages.delete_groups import DeleteGroupsRequest
from kquorum.wire.messages.describe_groups import DescribeGroupsRequest
from kquorum.wire.messages.find_coordinator import FindCoordinatorRequest
from kquorum.wire.messages.list_groups import ListGroupsRequest
from kquorum.wire.messages.offset_delete import OffsetDeleteRequest
from kquorum.wire.protocol.api_keys import ApiKey
from tests.support.broker.data_world import DataWorld
from tests.support.broker.group_world import GROUP, GroupWorld, error_of_commit
from tests.support.images import fencing
from tests.support.many_entries import longest_answer

VERSIONS = range(BROKER_APIS[ApiKey.FIND_COORDINATOR].versions[1] + 1)


def find(
    world: DataWorld, version: int = 6, key: str = GROUP, key_type: int = 0
) -> tuple[str, int, str, int]:
    if version < 4:
        answer = world.ask_now(FindCoordinatorRequest(key=key, key_type=key_type), version)
    else:
        request = FindCoordinatorRequest(coordinator_keys=(key,), key_type=key_type)
        [answer] = world.ask_now(request, version).coordinators
    return answer.error_code.name, answer.node_id, answer.host, answer.port


@pytest.mark.parametrize("version", VERSIONS)
def test_the_leader_of_the_partition_coordinates(version: int) -> None:
    world = GroupWorld(has_follower=True)
    error, node_id, host, port = find(world, version)
    broker = world.image.cluster.brokers[1]
    assert (error, node_id) == ("none", 1)
    assert (host, port) in {(each.host, each.port) for each in broker.end_points}
    world.elect(2)
    assert find(world, version)[1] == 2


@pytest.mark.parametrize("version", VERSIONS)
def test_the_first_question_creates_the_topic(version: int) -> None:
    created: list[str] = []
    world = DataWorld(create_internal_topic=created.append)
    assert find(world, version) == ("coordinator_not_available", -1, "", -1)
    assert created == [OFFSETS_TOPIC]


def test_a_leader_that_is_not_alive_is_not_told() -> None:
    world = GroupWorld(has_follower=True)
    world.elect(2)
    world.change(fencing(2, fenced=True))
    assert find(world)[0] == "coordinator_not_available"


@pytest.mark.parametrize("version", VERSIONS[1:])
def test_share_groups_have_no_coordinator(version: int) -> None:
    assert find(GroupWorld(), version, key_type=2)[0] == "invalid_request"


def test_a_refusal_of_many_is_not_many_times_as_long() -> None:
    request = FindCoordinatorRequest(coordinator_keys=("",) * 2_000, key_type=2)
    assert len(encode(GroupWorld().ask_now(request), 6)) < longest_answer(2_000)


class TestRights:
    """Of a client without any."""

    @pytest.fixture
    def world(self) -> GroupWorld:
        made = GroupWorld()
        made.commit(7)
        authorizer = Authorizer(AuthorizerConfig())
        gate = RequestAuthorizer(authorizer, DenialLog(lambda: 0, lambda _line: None))
        made.services = replace(made.services, authorizer=gate)
        return made

    def test_coordinators_and_members(self, world: GroupWorld) -> None:
        refused = "group_authorization_failed"
        assert find(world)[0] == refused
        assert world.join().answer.error_code.name == refused
        assert world.sync("m", 1).answer.error_code.name == refused
        assert world.beat("m", 1) == refused
        assert world.leave(("m", None)).error_code.name == refused

    def test_offsets(self, world: GroupWorld) -> None:
        refused = "group_authorization_failed"
        assert error_of_commit(world.commit(8)) == refused
        [group] = world.fetch(0).answer.groups
        assert group.error_code.name == refused
        assert world.ask(OffsetDeleteRequest(group_id=GROUP)).answer.error_code.name == refused

    def test_groups(self, world: GroupWorld) -> None:
        assert world.ask_local(ListGroupsRequest()).groups == ()
        [described] = world.ask_local(DescribeGroupsRequest(groups=(GROUP,))).groups
        [deleted] = world.ask(DeleteGroupsRequest(groups_names=(GROUP,))).answer.results
        told: list[Any] = [described.error_code.name, deleted.error_code.name]
        assert told == ["group_authorization_failed"] * 2
