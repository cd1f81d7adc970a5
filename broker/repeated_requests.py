"""Requests whose answer was lost, and what the log says of them.

If a controller dies between commit and response, the broker does not know whether the request was carried out. Kafka's
brokers send the request again; the client then gets TOPIC_ALREADY_EXISTS, or the retry undoes what another client has
done since. Here the broker reads the outcome from the log: the audit note of a request holds the id that the broker
gave it (`wire.forwarding_id`), and reaches the broker with the image. A request whose note is in the image is not sent
again; the client gets a success response.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from google.protobuf.message import DecodeError

from kquorum.broker.forwarded_response_recovery import ForwardedResponseRecovery, says_undone
from kquorum.broker.request_effects import Change, ConfigsOf
from kquorum.metadata.controller.divided_requests import may_be_divided
from kquorum.metadata.controller.requests import ControllerRequest
from kquorum.metadata.image.delta import MetadataDelta
from kquorum.metadata.image.image import MetadataImage
from kquorum.wire.message_schema import Response
from kquorum.wire.proto.audit_pb2 import AuditNote


class Watched:
    """A request on its way. `change` is what the image says that it has done, None until then; `on_carried_out` is
    called at that moment."""

    __slots__ = ("change", "is_in_doubt", "on_carried_out", "request")

    def __init__(self, request: ControllerRequest) -> None:
        self.request = request
        self.change: Change | None = None
        self.is_in_doubt = False
        self.on_carried_out: Callable[[], object] = lambda: None

    def doubt(self) -> None:
        """An attempt had no answer, or one from a controller that may have lost its leadership over it."""
        self.is_in_doubt = True


class RepeatedRequests:
    """Pass every image to `observe`, in order."""

    def __init__(self, configs_of: ConfigsOf, *, token_secret_key: str | None = None) -> None:
        self._answers = ForwardedResponseRecovery(configs_of, token_secret_key)
        self._watched: dict[bytes, Watched] = {}

    @contextmanager
    def watch(self, forwarding_id: bytes, request: ControllerRequest) -> Iterator[Watched]:
        """While the request is on its way. No two have the same id."""
        watched = self._watched[forwarding_id] = Watched(request)
        try:
            yield watched
        finally:
            del self._watched[forwarding_id]

    def observe(self, _now_ms: int, delta: MetadataDelta, image: MetadataImage) -> None:
        if not self._watched:
            return
        for data in delta.audit_notes:
            note = _note(data)
            watched = None if note is None else self._watched.get(note.forwarding_id)
            if note is not None and watched is not None:
                before = delta.image if watched.change is None else watched.change.before
                watched.change = Change(before, image, note.is_whole)
                watched.on_carried_out()

    def has_to_wait(self, response: Response, watched: Watched) -> bool:
        """Whether an earlier attempt, not in this broker's image yet, may have caused this response."""
        return watched.is_in_doubt and watched.change is None and says_undone(response)

    def is_done(self, watched: Watched) -> bool:
        """Whether to send it again would be of no use. A controller that decides a long request in parts may have been
        lost after one of them: then the rest is still to be done."""
        change = watched.change
        if change is None or not self.can_tell(watched):
            return False
        return change.is_whole or not may_be_divided(watched.request, change.before)

    def can_tell(self, watched: Watched) -> bool:
        """Whether the image holds an answer, though it may be of a part."""
        return watched.change is not None and self._answers.can_be_told(watched.request, watched.change)

    def lost_answer(self, watched: Watched) -> Response:
        """What the lost answer said, where that can be told."""
        assert watched.change is not None, "the image does not tell"
        return self._answers.lost_answer(watched.request, watched.change)

    def first_answer(self, response: Response, watched: Watched) -> Response:
        """A later attempt's answer with what an earlier one has done told as done; the same one where there is
        nothing."""
        change, request = watched.change, watched.request
        if not watched.is_in_doubt or change is None or not says_undone(response):
            return response
        if change.is_whole and self._answers.can_be_told(request, change):
            return self._answers.lost_answer(request, change)
        return self._answers.mended_answer(request, response, change)


def _note(data: bytes) -> AuditNote | None:
    """None for garbage."""
    try:
        return AuditNote.FromString(data)
    except DecodeError:
        return None
