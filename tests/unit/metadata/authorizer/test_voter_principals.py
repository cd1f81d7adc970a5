"""kquorum.voter.principals: who may send what only voters send to each other."""

from typing import Any

import pytest

from kquorum.metadata.authorizer.codes import Operation
from kquorum.metadata.controller_apis import CONTROLLER_APIS
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.protocol.api_keys import ApiKey
from kquorum.wire.protocol.apis import supported_versions
from tests.support.acl_worlds import acl
from tests.support.controller_world import CLUSTER_ID
from tests.support.hostile_requests import HostileRequests
from tests.support.metadata.listener_world import ListenerWorld

VOTER, BROKER = "User:CN=node-1", "User:CN=node-101"
OF_VOTERS = [ApiKey.VOTE, ApiKey.BEGIN_QUORUM_EPOCH, ApiKey.END_QUORUM_EPOCH, ApiKey.UPDATE_RAFT_VOTER]
OF_OBSERVERS = [ApiKey.FETCH, ApiKey.FETCH_SNAPSHOT, ApiKey.DESCRIBE_QUORUM]
REFUSED = ErrorCode.cluster_authorization_failed


def world_of(*, is_limited: bool = True, has_authorizer: bool = True) -> ListenerWorld:
    """Both are super users, as the nodes of a cluster are."""
    return ListenerWorld(
        super_users=frozenset({VOTER, BROKER}),
        voters=frozenset({VOTER}) if is_limited else frozenset(),
        has_authorizer=has_authorizer,
    )


def asked(world: ListenerWorld, api_key: ApiKey, principal: str) -> Any:
    version = supported_versions(api_key)[0]
    body = HostileRequests(1, CLUSTER_ID, "secret").request(api_key, version, world.world.controller.image)
    return world.ask(api_key, body, version, principal=principal)


@pytest.mark.parametrize("has_authorizer", [True, False])
@pytest.mark.parametrize("api_key", OF_VOTERS)
def test_a_brokers_principal_is_refused_and_a_voters_is_served(api_key: ApiKey, has_authorizer: bool) -> None:
    world = world_of(has_authorizer=has_authorizer)
    assert asked(world, api_key, BROKER).error_code == REFUSED
    assert not world.raft_requests
    [line] = world.lines
    assert BROKER in line
    assert api_key.name in line
    assert asked(world, api_key, VOTER).error_code == ErrorCode.none
    assert [each.principal for each in world.raft_requests] == [VOTER]


@pytest.mark.parametrize("api_key", OF_VOTERS)
def test_an_empty_list_is_as_in_kafka(api_key: ApiKey) -> None:
    world = world_of(is_limited=False)
    assert asked(world, api_key, BROKER).error_code == ErrorCode.none


@pytest.mark.parametrize("api_key", OF_OBSERVERS)
def test_what_observers_send_too_is_for_brokers_as_before(api_key: ApiKey) -> None:
    world = world_of()
    asked(world, api_key, BROKER)
    assert [each.principal for each in world.raft_requests] == [BROKER]
    assert not world.lines


def test_a_voter_on_the_list_still_needs_the_right_on_the_cluster() -> None:
    world = ListenerWorld(voters=frozenset({"User:eve"})).allow(acl(Operation.ALTER))
    assert asked(world, ApiKey.VOTE, "User:eve").error_code == REFUSED


def test_it_is_refused_before_its_body_is_read() -> None:
    for api_key in OF_VOTERS:
        assert not CONTROLLER_APIS[api_key].authorization.needs_body
