"""Requests to each peer, after Kafka's RequestManagerTest (rule R8.3)."""

from uuid import UUID

import pytest

from kquorum.raft.config import QuorumConfig
from kquorum.raft.connections import Connections

CONFIG = QuorumConfig(
    node_id=1,
    directory_id=UUID(int=1),
    cluster_id="test",
    can_be_voter=True,
    request_timeout_ms=1000,
    retry_backoff_ms=50,
)
NOW_MS = 10_000


@pytest.fixture
def connections() -> Connections:
    return Connections(CONFIG)


def test_an_unknown_peer_is_ready(connections: Connections) -> None:
    assert connections.is_ready(2, 0)
    assert connections.ready_at_ms(2) == 0


def test_one_request_is_under_way_to_a_peer_and_none_to_others(connections: Connections) -> None:
    """testFindReadyWithInflightRequest"""
    connections.sent(2, NOW_MS)
    assert not connections.is_ready(2, NOW_MS)
    assert connections.is_ready(3, NOW_MS)


def test_each_request_has_a_correlation_id_of_its_own_whatever_the_peer(connections: Connections) -> None:
    seen = [connections.sent(2 + number % 3, NOW_MS) for number in range(9)]
    assert len(set(seen)) == 9
    assert seen == sorted(seen)
    assert connections.next_correlation_id > seen[-1]


def test_an_answer_makes_the_peer_ready(connections: Connections) -> None:
    """testSuccessfulResponse"""
    correlation_id = connections.sent(2, NOW_MS)
    assert connections.completed(2, correlation_id)
    assert connections.is_ready(2, NOW_MS)
    assert not connections.completed(2, correlation_id), "one answer to one request"


def test_an_answer_that_no_request_waits_for_changes_nothing(connections: Connections) -> None:
    """testIgnoreUnexpectedResponse"""
    correlation_id = connections.sent(2, NOW_MS)
    for node_id, other_id in ((2, correlation_id + 1), (2, correlation_id - 1), (3, correlation_id), (9, 1)):
        assert not connections.completed(node_id, other_id)
    assert not connections.is_ready(2, NOW_MS)
    assert connections.completed(2, correlation_id)


def test_a_request_without_an_answer_times_out(connections: Connections) -> None:
    """testRequestTimeout, testFindReadyWithRequestTimedout"""
    connections.sent(2, NOW_MS)
    assert connections.ready_at_ms(2) == NOW_MS + 1000
    assert not connections.is_ready(2, NOW_MS + 999)
    assert connections.is_ready(2, NOW_MS + 1000)


def test_after_a_timeout_and_a_new_request_the_late_response_is_ignored(
    connections: Connections,
) -> None:
    first = connections.sent(2, NOW_MS)
    second = connections.sent(2, NOW_MS + 1000)
    assert not connections.completed(2, first)
    assert connections.completed(2, second)


@pytest.mark.parametrize(("asked_for", "expected"), [(None, 50), (0, 0), (700, 700)])
def test_a_peer_that_failed_is_left_alone_for_a_while(
    connections: Connections, asked_for: int | None, expected: int
) -> None:
    """testBackoffAfterFailure"""
    correlation_id = connections.sent(2, NOW_MS)
    connections.back_off(2, NOW_MS, asked_for)
    assert connections.ready_at_ms(2) == NOW_MS + expected
    assert connections.is_ready(2, NOW_MS + expected)
    assert expected == 0 or not connections.is_ready(2, NOW_MS + expected - 1)
    assert not connections.completed(2, correlation_id), "what was under way is forgotten"


def test_a_change_of_role_forgets_all(connections: Connections) -> None:
    """testResetAllConnections"""
    correlation_id = connections.sent(2, NOW_MS)
    connections.back_off(3, NOW_MS)
    connections.reset()
    assert connections.is_ready(2, NOW_MS)
    assert connections.is_ready(3, NOW_MS)
    assert not connections.completed(2, correlation_id)
    assert connections.sent(2, NOW_MS) > correlation_id, "a number is never used again"
