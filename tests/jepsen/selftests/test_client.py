"""Every error is distinguished: what surely had no effect, and what may have had."""

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from kquorum.node.config.materialise import free_ports
from kquorum.wire.protocol.apis import ApiKey, api_version, supported_versions
from kquorum.wire.protocol.frames import encode_frame
from kquorum.wire.protocol.headers import decode_request_header
from tests.jepsen.core.client import RawClient, TopicsClient
from tests.jepsen.core.errors import ClientError
from tests.jepsen.core.history import Op, OpType
from tests.jepsen.net.proxies import ProxyNetwork
from tests.jepsen.workloads.topics_set import TopicsWorker, element_of, topic_name
from tests.support.api_calls import response_of
from tests.support.kio.frames import encode_response

Answer = Callable[[ApiKey, int], dict[str, object] | None]
CREATED: dict[str, object] = {
    "name": "t",
    "topic_id": None,
    "error_code": 0,
    "error_message": None,
    "num_partitions": 1,
    "replication_factor": 1,
    "configs": (),
    "topic_config_error_code": 0,
}


@contextmanager
def broker(answer: Answer) -> Iterator[int]:
    """A server which answers ApiVersions, and for the rest what the test sets: values, or None to hang up."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=_serve, args=(server, answer), daemon=True)
        thread.start()
        try:
            yield server.getsockname()[1]
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join(5)


def _serve(server: socket.socket, answer: Answer) -> None:
    while True:
        try:
            connection, _ = server.accept()
        except OSError:
            return
        with connection:
            while (request := _read_frame(connection)) is not None:
                header, _ = decode_request_header(request)
                values = (
                    _versions()
                    if header.api_key == ApiKey.API_VERSIONS
                    else answer(ApiKey(header.api_key), header.api_version)
                )
                if values is None:
                    break
                entity = response_of(header.api_key, header.api_version, values)
                connection.sendall(
                    encode_frame(
                        encode_response(header.api_key, header.api_version, header.correlation_id, entity)
                    )
                )


def _versions() -> dict[str, object]:
    keys = [
        {"api_key": key, "min_version": supported_versions(key)[0], "max_version": supported_versions(key)[1]}
        for key in (ApiKey.API_VERSIONS, ApiKey.CREATE_TOPICS, ApiKey.METADATA)
    ]
    return {"error_code": 0, "api_keys": keys, "supported_features": (), "finalized_features": ()}


def _read_frame(connection: socket.socket) -> bytes | None:
    head = connection.recv(4, socket.MSG_WAITALL)
    if len(head) < 4:
        return None
    return connection.recv(struct.unpack(">i", head)[0], socket.MSG_WAITALL)


def client(port: int, timeout_s: float = 5.0) -> TopicsClient:
    return TopicsClient(RawClient("127.0.0.1", port, timeout_s), timeout_ms=1000)


def create_error(answer: Answer) -> ClientError:
    with broker(answer) as port:
        topics = client(port)
        try:
            with pytest.raises(ClientError) as caught:
                topics.create("t")
            return caught.value
        finally:
            topics.close()


def test_a_create_that_is_acknowledged_returns() -> None:
    with broker(lambda *_: {"topics": [CREATED]}) as port:
        topics = client(port)
        topics.create("t")
        topics.create("t")
        topics.close()


def test_a_refused_connection_is_definite() -> None:
    topics = client(free_ports(1)[0])
    with pytest.raises(ClientError, match="cannot connect") as caught:
        topics.create("t")
    assert caught.value.definite


def test_a_connection_that_ends_before_the_answer_is_indefinite() -> None:
    error = create_error(lambda *_: None)
    assert not error.definite
    assert "the connection ended" in error.reason


def test_an_answer_that_does_not_come_in_time_is_indefinite() -> None:
    is_given_up = threading.Event()

    def late(key: ApiKey, version: int) -> dict[str, object] | None:
        is_given_up.wait(5)
        return None

    with broker(late) as port:
        topics = client(port, timeout_s=0.2)
        with pytest.raises(ClientError) as caught:
            topics.create("t")
        is_given_up.set()
    assert not caught.value.definite


@pytest.mark.parametrize(
    ("code", "definite"),
    [
        (17, True),
        (37, True),
        (38, True),
        (42, True),
        (7, False),
        (36, False),
        (41, False),
        (-1, False),
        (13, False),
    ],
)
def test_an_error_code_says_whether_anything_was_written(code: int, definite: bool) -> None:
    refusal = {**CREATED, "error_code": code, "error_message": "because"}
    error = create_error(lambda *_: {"topics": [refusal]})
    assert error.definite is definite
    assert "because" in error.reason


def test_an_api_which_the_broker_lacks_is_definite() -> None:
    with broker(lambda *_: None) as port:
        topics = client(port)
        with pytest.raises(ClientError, match="no common version of DELETE_TOPICS") as caught:
            topics.delete("t")
        topics.close()
    assert caught.value.definite


def test_after_an_unanswered_request_the_next_one_has_a_connection_of_its_own() -> None:
    """Else it would take the late answer of the one before for its own."""
    answers: list[dict[str, object] | None] = [None, {"topics": [CREATED]}]
    with broker(lambda *_: answers.pop(0)) as port:
        topics = client(port)
        with pytest.raises(ClientError):
            topics.create("t")
        topics.create("t")
        topics.close()


def ended(op: Op, answer: Answer) -> Op:
    with broker(answer) as port:
        worker = TopicsWorker(lambda: client(port), ProxyNetwork((), ()))
        worker.open()
        try:
            return worker.invoke(op)
        finally:
            worker.close()


def test_the_worker_ends_operations_as_the_errors_say() -> None:
    create = Op(type=OpType.INVOKE, f="create", value=7, process=0)
    assert ended(create, lambda *_: {"topics": [CREATED]}).type is OpType.OK
    assert ended(create, lambda *_: None).type is OpType.INFO
    assert ended(create, lambda *_: {"topics": [{**CREATED, "error_code": 17}]}).type is OpType.FAIL


def test_a_read_without_an_answer_is_a_fail_for_it_had_no_effect() -> None:
    op = ended(Op(type=OpType.INVOKE, f="list", process=0), lambda *_: None)
    assert (op.type, op.value) == (OpType.FAIL, None)


def test_a_read_answers_the_elements_of_our_topics_as_they_came() -> None:
    def metadata(key: ApiKey, version: int) -> dict[str, object]:
        names = [topic_name(3), "other", topic_name(1), topic_name(3)]
        topics: list[Any] = [
            {"name": name, "topic_id": None, "error_code": 0, "is_internal": False, "partitions": ()}
            for name in names
        ]
        return {"brokers": (), "cluster_id": "c", "controller_id": 1, "topics": topics, "error_code": 0}

    op = ended(Op(type=OpType.INVOKE, f="list", process=0), metadata)
    assert (op.type, op.value) == (OpType.OK, [3, 1, 3])


def test_names_and_elements_belong_together() -> None:
    assert element_of(topic_name(42)) == 42
    assert element_of("jepsen-x") is element_of("000042") is None
    assert api_version(ApiKey.METADATA, 12).api_key is ApiKey.METADATA
