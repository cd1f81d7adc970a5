"""Whose request an envelope says it holds, and that only the answer to it is handed on."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from kquorum.broker.adapters.forwarding import Forwarder
from kquorum.broker.repeated_requests import RepeatedRequests
from kquorum.metadata.forwarding import decode_address, decode_principal
from kquorum.network.requests import RequestContext
from kquorum.wire.errors import DecodeError
from kquorum.wire.forwarding_id import FORWARDING_ID_BYTES, forwarding_id_of
from kquorum.wire.messages.envelope import EnvelopeRequest, EnvelopeResponse
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.protocol.api_keys import ApiKey
from kquorum.wire.protocol.headers import EncodedBody, RequestHeader, decode_request_header
from tests.support.api_calls import request_of, response_of
from tests.support.kio.frames import encode_response

VERSION = 0
HEADER = RequestHeader(ApiKey.UNREGISTER_BROKER, VERSION, 77, "the-client")
REQUEST = request_of(ApiKey.UNREGISTER_BROKER, VERSION, {"broker_id": 5})


class Channel:
    """In place of a ControllerChannel: keeps the envelope, and answers with `correlation_id` inside."""

    def __init__(self, correlation_id: int = 77) -> None:
        self.envelopes: list[EnvelopeRequest] = []
        self.forwarding_ids: list[bytes] = []
        values = {"error_code": ErrorCode.none, "error_message": None}
        entity = response_of(ApiKey.UNREGISTER_BROKER, VERSION, values)
        self._answer = encode_response(ApiKey.UNREGISTER_BROKER, VERSION, correlation_id, entity)

    async def call(
        self,
        request: EnvelopeRequest,
        _on_doubt: object,
        *,
        is_done: Callable[[], bool],
        is_for_the_leader: Callable[[Any], bool],
        header_fields: tuple[tuple[int, bytes], ...],
        is_long: bool,
        share: str,
        is_gone: Callable[[], bool],
    ) -> Any:
        assert not is_done()
        assert share == "User:alice"
        assert not is_gone()
        self.forwarding_ids.append(forwarding_id_of(header_fields))
        self.envelopes.append(request)
        return EnvelopeResponse(response_data=self._answer)


def forwarded(channel: Channel, **context: Any) -> EncodedBody | None:
    repeated = RepeatedRequests(lambda _image, _name: ())
    asked: dict[str, Any] = {"peer_host": "10.1.2.3", "principal": "User:alice", **context}
    of_client = RequestContext(connection_id=1, listener_name="PLAINTEXT", header=HEADER, **asked)
    carrier: Any = channel
    return asyncio.run(Forwarder(carrier, repeated).forward(of_client, REQUEST))


@pytest.mark.parametrize("is_token_authenticated", [False, True])
@pytest.mark.parametrize("host", ["10.1.2.3", "2001:db8::7"])
def test_the_envelope_names_the_client_and_not_the_broker(host: str, is_token_authenticated: bool) -> None:
    channel = Channel()
    assert forwarded(channel, peer_host=host, is_token_authenticated=is_token_authenticated) is not None
    (envelope,) = channel.envelopes
    assert decode_principal(envelope.request_principal) == ("User:alice", is_token_authenticated)
    assert decode_address(envelope.client_host_address) == host
    header, _ = decode_request_header(envelope.request_data)
    assert (header.correlation_id, header.client_id) == (77, "the-client")


def test_the_request_goes_on_as_it_came() -> None:
    channel = Channel()
    forwarded(channel, frame=b"as it came, with unknown fields")
    assert channel.envelopes[0].request_data == b"as it came, with unknown fields"


def test_the_answer_to_another_request_is_ignored() -> None:
    with pytest.raises(DecodeError, match="no answer to the forwarded request"):
        forwarded(Channel(correlation_id=78))


def test_each_request_has_an_id_of_its_own_though_a_client_numbers_them_alike() -> None:
    channel = Channel()
    for _ in range(3):
        forwarded(channel)
    assert len(set(channel.forwarding_ids)) == 3
    assert {len(each) for each in channel.forwarding_ids} == {FORWARDING_ID_BYTES}
