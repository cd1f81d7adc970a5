"""Envelopes, whose sender and whose client are both judged; DescribeCluster's bits; and what is logged of denials."""

from kquorum.metadata.authorizer.access import Denial
from kquorum.metadata.authorizer.codes import Operation, ResourceType
from kquorum.metadata.authorizer.denial_log import MOST_IN_A_WINDOW, DenialLog
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.protocol.api_keys import ApiKey
from tests.support.acl_worlds import ADMIN, ALICE, BOB, HERE, acl
from tests.support.controller_world import NODE_ID, topic
from tests.support.metadata.listener_world import ListenerWorld

CREATION = {"topics": [topic("new")], "timeout": 1000}
FAILED = ErrorCode.cluster_authorization_failed


def test_a_client_without_cluster_action_cannot_forward_as_a_super_user() -> None:
    world = ListenerWorld()
    assert world.forward(ApiKey.CREATE_TOPICS, CREATION, principal=ADMIN, broker=ALICE) is FAILED
    assert not world.world.controller.image.topics.by_name
    world.allow(acl(Operation.CLUSTER_ACTION, principal=BOB))
    answer = world.forward(ApiKey.CREATE_TOPICS, CREATION, principal=ADMIN, broker=BOB)
    assert answer.topics[0].error_code is ErrorCode.none


def test_the_host_that_counts_is_that_of_the_client() -> None:
    world = ListenerWorld().allow(acl(Operation.CREATE, host="10.9.9.9"))
    answer = world.forward(ApiKey.CREATE_TOPICS, CREATION)
    assert answer.topics[0].error_code is ErrorCode.topic_authorization_failed
    world.allow(acl(Operation.CREATE, host=HERE))
    assert world.forward(ApiKey.CREATE_TOPICS, CREATION).topics[0].error_code is ErrorCode.none


def test_before_the_acls_are_read_a_broker_is_sent_on_to_ask_again() -> None:
    world = ListenerWorld(is_loaded=False)
    assert world.forward(ApiKey.CREATE_TOPICS, CREATION) is ErrorCode.not_controller
    answer = world.forward(ApiKey.CREATE_TOPICS, CREATION, principal=ADMIN)
    assert answer.topics[0].error_code is ErrorCode.none


def test_a_standby_sends_a_client_on_that_may_do_what_it_asks() -> None:
    world = ListenerWorld().allow(acl(Operation.CREATE))
    world.world.follow(NODE_ID + 1, 2)
    assert world.forward(ApiKey.CREATE_TOPICS, CREATION) is ErrorCode.not_controller


def test_questions_of_the_quorum_inside_envelopes_are_judged_by_the_client() -> None:
    world = ListenerWorld()
    assert world.forward(ApiKey.DESCRIBE_QUORUM, {"topics": ()}).error_code is FAILED
    world.allow(acl(Operation.DESCRIBE))
    assert world.forward(ApiKey.DESCRIBE_QUORUM, {"topics": ()}).error_code is ErrorCode.none
    assert [context.principal for context in world.raft_requests] == [ALICE]


def test_describe_cluster_tells_the_operations_that_are_allowed() -> None:
    ask = {
        "include_cluster_authorized_operations": True,
        "endpoint_type": 2,
        "include_fenced_brokers": False,
    }
    world = ListenerWorld().allow(acl(Operation.ALTER), acl(Operation.CREATE))
    bits = world.ask(ApiKey.DESCRIBE_CLUSTER, ask).cluster_authorized_operations
    # ALTER implies DESCRIBE.
    assert bits == 1 << Operation.ALTER | 1 << Operation.CREATE | 1 << Operation.DESCRIBE
    assert world.ask(ApiKey.DESCRIBE_CLUSTER, ask, principal=BOB).error_code is FAILED
    ask["include_cluster_authorized_operations"] = False
    assert world.ask(ApiKey.DESCRIBE_CLUSTER, ask).cluster_authorized_operations == -(2**31)


# What is logged of denials


class Told:
    def __init__(self) -> None:
        self.now_ms = 0
        self.lines: list[str] = []
        self.log = DenialLog(lambda: self.now_ms, self.lines.append)

    def deny(self, name: str = "orders", principal: str = ALICE) -> None:
        denial = Denial(principal, HERE, Operation.READ, ResourceType.TOPIC, name)
        self.log.note(ApiKey.METADATA, denial)


def test_a_denial_is_reported_once_a_minute() -> None:
    told = Told()
    for _ in range(5):
        told.deny()
    assert told.lines == ["User:alice at 10.0.0.1 is denied READ on topic orders, asked by METADATA"]
    told.deny(principal=BOB)
    assert len(told.lines) == 2
    told.now_ms = 60_000
    told.deny()
    assert len(told.lines) == 3


def test_ever_new_names_do_not_flood_the_log() -> None:
    told = Told()
    for number in range(10 * MOST_IN_A_WINDOW):
        told.deny(f"topic-{number}")
    assert len(told.lines) == MOST_IN_A_WINDOW
    told.now_ms = 60_000
    told.deny()
    left_out = 9 * MOST_IN_A_WINDOW
    assert told.lines[-2] == f"{left_out} more denials of the last minute are left out here"


def test_a_name_cannot_write_lines_of_its_own_nor_endless_ones() -> None:
    told = Told()
    told.deny("x\nUser:admin is allowed everything\x1b[2J" + "y" * 30_000)
    [line] = told.lines
    assert line.isprintable()
    assert len(line) < 400


def test_requests_that_are_denied_are_reported_without_what_is_in_them() -> None:
    world = ListenerWorld()
    upsertion = {
        "name": "x",
        "mechanism": 1,
        "iterations": 4096,
        "salt": b"sEcret",
        "salted_password": b"sEcret",
    }
    world.ask(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, {"deletions": (), "upsertions": [upsertion]})
    assert world.lines == [
        "User:alice at 10.0.0.1 is denied ALTER on cluster kafka-cluster, asked by ALTER_USER_SCRAM_CREDENTIALS"
    ]
