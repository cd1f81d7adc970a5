"""How the body of a request is read: as the message of its API."""

from kquorum.wire import message_codec
from kquorum.wire.message_schema import Request, Response
from kquorum.wire.primitives import Buffer
from kquorum.wire.protocol.apis import message_types


def read_request(
    api_key: int, version: int, data: Buffer, position: int, most_elements: int
) -> tuple[Request[Response], int]:
    """Answers the body, which begins at `position`, and the number of its elements. Bytes after it are passed over, as
    Kafka's brokers do. In any thread.

    Raises UnsupportedVersion, DecodeError, and TooManyElements for more elements than allowed.
    """
    cls = message_types(api_key)[0]
    message, _ = message_codec.decode_bounded(cls, version, data, position, most_elements)
    return message, message_codec.elements_read()


def prepare(api_key: int, version: int) -> None:
    """Import and compile what the first request would wait for."""
    request, response = message_types(api_key)
    message_codec.bounded_decoder_of(request, version)
    message_codec.encoder_of(response, version)
