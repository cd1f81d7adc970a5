"""A change of the voters that the replica made is noted in the log by the controller, one that it refused is not."""

from typing import Any

import pytest

from kquorum.metadata.adapters.listener import ControllerListener
from kquorum.network.requests import Reply, RequestContext
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.operator_reason import reason_fields
from kquorum.wire.protocol.api_keys import ApiKey
from kquorum.wire.protocol.headers import RequestHeader
from tests.support.kio.classes import request_class, response_class
from tests.support.kio.entities import build
from tests.support.running_controllers import FakeController


def noted(error: ErrorCode) -> list[tuple[str, str | None]]:
    """The notes, by the time of the answer."""
    controller = FakeController(lambda _: None)
    at_answer: list[list[tuple[str, str | None]]] = []

    def handle_raft(context: RequestContext, _request: Any, reply: Reply) -> None:
        cls = response_class(context.header.api_key, context.header.api_version)
        reply(build(cls, {"error_code": error, "error_message": None}))

    listener = ControllerListener(
        controller=controller, handle_raft=handle_raft, now_ms=lambda: 1234, wake=controller.wake
    )
    header = RequestHeader(ApiKey.REMOVE_RAFT_VOTER, 0, 7, "cli", reason_fields("disk replaced"))
    body = build(
        request_class(ApiKey.REMOVE_RAFT_VOTER, 0),
        {"cluster_id": None, "voter_id": 2, "voter_directory_id": None},
    )
    context = RequestContext(1, "10.0.0.7", "CONTROLLER", header)
    listener.handle(context, body, lambda _: at_answer.append(list(controller.notes)))
    assert len(at_answer) == 1
    return at_answer[0]


def test_a_change_that_was_made_is_noted_before_its_answer() -> None:
    assert noted(ErrorCode.none) == [("remove voter 2", "disk replaced")]


@pytest.mark.parametrize("error", [ErrorCode.voter_not_found, ErrorCode.not_leader_or_follower])
def test_a_change_that_was_refused_is_not(error: ErrorCode) -> None:
    assert noted(error) == []
