"""Why the coordinator of a group refuses a request, in the words that its client gets."""

from __future__ import annotations

from kquorum.wire.messages.error_codes import ErrorCode


class GroupError(Exception):
    def __init__(self, error_code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.error_code = error_code
        self.message = message
