"""`--wait-all` says so, and ends with another status than 0, where a broker lacks what was committed."""

from typing import Any

import pytest

from kquorum.cli.commands.brokers import members_grpc as members_client
from kquorum.cli.commands.topics.wait_all import WaitForAll
from kquorum.cli.failures import CliError, ExitStatus
from kquorum.wire.proto import quorum_pb2 as pb


def answering(monkeypatch: pytest.MonkeyPatch, response: pb.WaitAppliedResponse) -> WaitForAll:
    async def wait_applied(*_arguments: Any) -> pb.WaitAppliedResponse:
        return response

    monkeypatch.setattr(members_client, "wait_applied", wait_applied)
    return WaitForAll(None, "127.0.0.1:1", 700)


def broker(broker_id: int, applied_offset: int) -> pb.BrokerProgress:
    endpoint = pb.BrokerEndpoint(name="PLAINTEXT", host="b", port=9)
    return pb.BrokerProgress(broker_id=broker_id, applied_offset=applied_offset, endpoints=[endpoint])


def test_a_broker_that_lacks_it_is_named_and_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    waiting = answering(monkeypatch, pb.WaitAppliedResponse(offset=9, lagging=[broker(102, 7)]))
    with pytest.raises(CliError) as caught:
        waiting.run("topic t was created")
    assert caught.value.status is ExitStatus.UNREACHABLE
    assert str(caught.value).startswith("topic t was created, but within 700 ms offset 9 was not applied")
    assert "broker 102 (b:9) lacks 2 records" in str(caught.value)


def test_fenced_brokers_are_named_and_are_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    response = pb.WaitAppliedResponse(offset=9, is_applied=True, fenced=[broker(103, 1)])
    done = answering(monkeypatch, response).run("topic t was created")
    assert (done.offset, done.fenced) == (9, (103,))
    assert "fenced, and without it: 103" in done.words
