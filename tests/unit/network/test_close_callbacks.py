"""A handler that has not answered yet is called back once when its connection closes."""

from kquorum.network.replies import ReplyQueue
from kquorum.wire.protocol.api_keys import ApiKey
from kquorum.wire.protocol.apis import ApiVersion
from kquorum.wire.protocol.headers import EncodedBody


def queue() -> ReplyQueue:
    return ReplyQueue(on_answer=lambda: None, on_failure=lambda _request, _error: None)


def test_each_is_called_once_when_the_connection_closes() -> None:
    calls: list[int] = []
    replies = queue()
    replies.when_closed(lambda: calls.append(1))
    replies.when_closed(lambda: calls.append(2))
    assert not calls
    replies.close()
    replies.close()
    assert calls == [1, 2]


def test_what_was_forgotten_is_not_called_though_another_gave_the_same_function() -> None:
    calls: list[str] = []

    def call() -> None:
        calls.append("called")

    replies = queue()
    forget = replies.when_closed(call)
    replies.when_closed(call)
    forget()
    forget()
    replies.close()
    assert calls == ["called"]


def test_one_that_comes_after_the_end_is_called_at_once() -> None:
    calls: list[str] = []
    replies = queue()
    replies.close()
    replies.when_closed(lambda: calls.append("called"))()
    assert calls == ["called"]
    replies.close()
    assert calls == ["called"]


def test_an_answer_that_went_out_or_was_given_up_is_kept_by_no_reply() -> None:
    """Its handler may refer to the reply until the garbage collector comes: 1.1 GB of Fetch answers were kept so."""
    replies = queue()
    first, second, third = (
        replies.open(ApiVersion(ApiKey.FETCH, 12, True, 2, 1), n, 0.0, 10) for n in range(3)
    )
    first(EncodedBody(b"records"))
    pieces, _ = replies.take_ready()
    assert b"".join(pieces).endswith(b"records")
    third(EncodedBody(b"records"))
    replies.close()
    assert (first.frame, second.frame, third.frame) == ((), None, ())
