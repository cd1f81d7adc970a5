"""What /healthz and /livez say of a node, and why."""

import json
from dataclasses import replace
from typing import Any

import pytest

from kquorum.broker.lifecycle_states import BrokerState
from kquorum.node.observability.figures import NodeFigures
from kquorum.node.observability.health import live_reply, ready_reply
from tests.support.node.figures import BROKER, FRESH, NOW_MS, node


def answer(figures: NodeFigures) -> tuple[int, dict[str, Any]]:
    reply = ready_reply(figures)
    return reply.status.value, json.loads(reply.body)


def test_a_node_that_saw_a_commit_lately_is_ready_and_says_of_when_its_metadata_is() -> None:
    status, told = answer(node())
    assert (status, told["status"], told["reason"]) == (200, "ready", "")
    assert told["metadata"] == {"offset": 41, "epoch": 3, "timestamp_ms": FRESH.timestamp_ms}
    assert told["ms_since_commit"] == 120
    assert told["roles"] == ["controller", "broker"]
    assert told["broker"] == {
        "state": "running",
        "epoch": 7,
        "is_fenced": False,
        "previous_session_ends_in_ms": None,
    }


def test_a_node_that_is_cut_off_lives_but_is_not_ready() -> None:
    cut_off = node(freshness=replace(FRESH, reason="no commit was seen for 9000 ms", is_cut_off=True))
    status, told = answer(cut_off)
    assert (status, told["status"], told["is_cut_off"]) == (503, "not ready", True)
    assert told["reason"] == "no commit was seen for 9000 ms"
    assert told["metadata"]["offset"] == 41, "it goes on serving what it has"
    assert live_reply(cut_off).status.value == 200


@pytest.mark.parametrize("state", [state for state in BrokerState if state is not BrokerState.RUNNING])
def test_a_broker_that_does_not_run_is_not_ready(state: BrokerState) -> None:
    status, told = answer(node(broker=replace(BROKER, state=state)))
    assert (status, told["reason"]) == (503, f"the broker is {state.value}")


def test_a_broker_that_waits_for_the_session_of_its_previous_process_says_so() -> None:
    waits = replace(
        BROKER, state=BrokerState.STARTING, is_fenced=True, previous_session_ends_ms=NOW_MS + 6_200
    )
    status, told = answer(node(broker=waits))
    assert (status, told["broker"]["previous_session_ends_in_ms"]) == (503, 6_200)
    assert told["reason"] == "the broker waits: the session of its previous process ends in 6 s"
    assert answer(node(broker=waits, now_ms=NOW_MS + 7_000))[1]["broker"]["previous_session_ends_in_ms"] == 0


def test_a_fenced_broker_is_not_ready() -> None:
    status, told = answer(node(broker=replace(BROKER, is_fenced=True)))
    assert (status, told["reason"]) == (503, "the controller has this broker fenced")


def test_a_controller_alone_has_no_broker_to_be_ready() -> None:
    status, told = answer(node(broker=None, roles=("controller",)))
    assert status == 200
    assert told["roles"] == ["controller"]
    assert "broker" not in told
