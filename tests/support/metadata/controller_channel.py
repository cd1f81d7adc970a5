"""A controller channel to a fake controller on a real socket."""

from kquorum.metadata.adapters.controller_channel import (
    ControllerAddress,
    ControllerChannel,
)
from kquorum.wire.messages.error_codes import ErrorCode
from tests.support.api_calls import Values

HEARTBEAT = {
    "broker_id": 1,
    "broker_epoch": 5,
    "current_metadata_offset": 7,
    "want_fence": False,
    "want_shut_down": False,
    "offline_log_dirs": (),
}


def heartbeat_answer(error: ErrorCode = ErrorCode.none) -> Values:
    return {"error_code": error, "is_caught_up": True, "is_fenced": False, "should_shut_down": False}


class Leadership:
    """What the local replica knows."""

    def __init__(self, address: ControllerAddress | None = None) -> None:
        self.address = address
        self.asked = 0

    def find(self) -> ControllerAddress | None:
        self.asked += 1
        return self.address


def channel_to(
    leadership: Leadership, *, retry_timeout_ms: int = 10_000, request_timeout_ms: int = 5_000
) -> ControllerChannel:
    return ControllerChannel(
        leadership.find,
        client_id="test",
        request_timeout_ms=request_timeout_ms,
        retry_timeout_ms=retry_timeout_ms,
    )
