"""Where a client is sent by a node that is not the active controller."""

import pytest

from kquorum.metadata.controller.requests import not_controller
from kquorum.wire.messages.error_codes import ErrorCode


@pytest.mark.parametrize(
    ("leader_id", "hint"),
    [(2, "node 2 is."), (-1, "no active controller is known."), (1, "no active controller is known.")],
)
def test_a_client_is_not_sent_back_to_a_resigned_leader(leader_id: int, hint: str) -> None:
    error = not_controller(leader_id, node_id=1)
    assert error.code is ErrorCode.not_controller
    assert error.message == f"This node is not the active controller; {hint}"
