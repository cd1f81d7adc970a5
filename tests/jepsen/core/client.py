"""A client without comfort: one connection, one request at a time, no retry, and every error told apart.

Real clients retry by themselves; then the meaning of an error is unknown.
"""

import socket
import struct
from collections.abc import Mapping
from typing import Any

from kquorum.wire.errors import DecodeError
from kquorum.wire.protocol.apis import ApiKey, supported_versions
from kquorum.wire.protocol.frames import encode_frame
from kquorum.wire.protocol.headers import read_correlation_id
from tests.jepsen.core.errors import ClientError, not_sent, refused, unanswered
from tests.support.api_calls import request_of
from tests.support.kio.frames import decode_response, encode_request

_LENGTH = struct.Struct(">i")
_MAX_RESPONSE_BYTES = 64 * 1024 * 1024
CLIENT_ID = "jepsen"


class RawClient:
    """Speaks the Kafka protocol over one blocking socket; every call ends within `timeout_s`.

    After an error that left a request unanswered the connection is closed, and opened again by the next call.
    """

    def __init__(self, host: str, port: int, timeout_s: float) -> None:
        self._address = (host, port)
        self._timeout_s = timeout_s
        self._socket: socket.socket | None = None
        self._versions: dict[int, tuple[int, int]] = {}
        self._correlation_id = 0

    def request(self, api_key: ApiKey, values: Mapping[str, object]) -> Any:
        """The response, in the highest version both sides know. Raises ClientError."""
        if self._socket is None:
            self._connect()
        version = self._common_version(api_key)
        return self._call(api_key, version, values)

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _connect(self) -> None:
        try:
            self._socket = socket.create_connection(self._address, self._timeout_s)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except OSError as error:
            self.close()
            raise not_sent(f"cannot connect: {error}") from error
        try:
            ranges = self._call(ApiKey.API_VERSIONS, 3, _SOFTWARE).api_keys
        except ClientError as error:
            raise not_sent(f"no ApiVersions: {error.reason}") from error
        self._versions = {int(item.api_key): (item.min_version, item.max_version) for item in ranges}

    def _common_version(self, api_key: ApiKey) -> int:
        ours, theirs = supported_versions(api_key), self._versions.get(api_key)
        if theirs is None or max(ours[0], theirs[0]) > min(ours[1], theirs[1]):
            raise not_sent(f"no common version of {api_key.name}")
        return min(ours[1], theirs[1])

    def _call(self, api_key: ApiKey, version: int, values: Mapping[str, object]) -> Any:
        assert self._socket is not None
        self._correlation_id += 1
        entity = request_of(api_key, version, values)
        frame = encode_frame(encode_request(api_key, version, self._correlation_id, CLIENT_ID, entity))
        try:
            self._socket.sendall(frame)
            response = self._read_frame(self._socket)
            if read_correlation_id(response) != self._correlation_id:
                raise DecodeError("the answer is to another request")
            return decode_response(api_key, version, response)[1]
        except (OSError, EOFError, DecodeError) as error:
            self.close()
            raise unanswered(f"{type(error).__name__}: {error}") from error

    def _read_frame(self, source: socket.socket) -> bytes:
        (length,) = _LENGTH.unpack(_read_exactly(source, _LENGTH.size))
        if not 0 < length <= _MAX_RESPONSE_BYTES:
            raise DecodeError(f"a response announces {length} bytes")
        return _read_exactly(source, length)


def _read_exactly(source: socket.socket, count: int) -> bytes:
    parts = bytearray()
    while len(parts) < count:
        part = source.recv(count - len(parts))
        if not part:
            raise EOFError("the connection ended")
        parts += part
    return bytes(parts)


_SOFTWARE = {"client_software_name": "kquorum-jepsen", "client_software_version": "1"}


class TopicsClient:
    """Topics as a set: create adds, delete removes, list reads."""

    def __init__(self, raw: RawClient, timeout_ms: int) -> None:
        self._raw = raw
        self._timeout_ms = timeout_ms

    def create(self, name: str) -> None:
        """Returns once the cluster has acknowledged it. Raises ClientError."""
        topic = {
            "name": name,
            "num_partitions": 1,
            "replication_factor": 1,
            "assignments": (),
            "configs": (),
        }
        response = self._raw.request(
            ApiKey.CREATE_TOPICS,
            {"topics": [topic], "timeout_ms": self._timeout_ms, "validate_only": False},
        )
        _check_only_result(response.topics)

    def delete(self, name: str) -> None:
        """Returns once the cluster has acknowledged it. Raises ClientError."""
        response = self._raw.request(
            ApiKey.DELETE_TOPICS,
            {
                "topics": [{"name": name, "topic_id": None}],
                "topic_names": [name],
                "timeout_ms": self._timeout_ms,
            },
        )
        _check_only_result(response.responses)

    def list(self) -> list[str]:
        """Every topic that this broker knows, in its order, doubles included. Raises ClientError."""
        response = self._metadata(None)
        if int(getattr(response, "error_code", 0)):
            raise refused(int(response.error_code), response.error_code.name, None)
        return [str(topic.name) for topic in response.topics]

    def brokers(self) -> set[int]:
        """The brokers which this broker knows to be alive. Raises ClientError."""
        return {int(broker.node_id) for broker in self._metadata(()).brokers}

    def close(self) -> None:
        self._raw.close()

    def _metadata(self, topics: tuple[str, ...] | None) -> Any:
        """None asks for all topics."""
        return self._raw.request(
            ApiKey.METADATA,
            {
                "topics": topics,
                "allow_auto_topic_creation": False,
                "include_cluster_authorized_operations": False,
                "include_topic_authorized_operations": False,
            },
        )


def _check_only_result(results: Any) -> None:
    if len(results) != 1:
        raise unanswered(f"one topic was asked for, {len(results)} were answered")
    (result,) = results
    if int(result.error_code):
        message = getattr(result, "error_message", None)
        raise refused(int(result.error_code), result.error_code.name, message)
