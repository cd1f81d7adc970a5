"""What stands open by a setting, or would by a number that overflows."""

import struct
from pathlib import Path
from typing import Any

import pytest

from kquorum.cli.main import run
from kquorum.metadata.authorizer.codes import Operation, ResourceType
from kquorum.metadata.controller.requests import ControllerRequest
from kquorum.metadata.delegation_tokens import is_expired
from kquorum.wire.message_schema import Response
from kquorum.wire.protocol.api_keys import ApiKey
from kquorum.wire.protocol.bodies import read_request
from tests.support.acl_worlds import ALICE, BOB, HERE, PREFIXED, acl, acls_of, authorizer
from tests.support.api_calls import read_answer
from tests.support.controller_world import World
from tests.support.kio.classes import request_class
from tests.support.kio.codec import encode
from tests.support.kio.entities import build
from tests.support.metadata.delegation_tokens import CREATE, EXPIRE, RENEW, create, the_token, token_world
from tests.support.single_node import write_config

MARK_MS = 1_234_567_890
EXTREMES = [2**63 - 1, -(2**63), 2**62, -1, 0, 1, 253_402_300_800_000]
END_OF_9999_MS = 253_402_300_799_999


def asked_with(world: World, api_key: ApiKey, field: str, milliseconds: int, **values: Any) -> Any:
    """As it comes from the wire, where it is any number of 64 bits."""
    kind = request_class(api_key, 2)
    written = encode(build(kind, {field: MARK_MS, **values}))
    mark = struct.pack(">q", MARK_MS)
    assert written.count(mark) == 1
    body = read_request(api_key, 2, written.replace(mark, struct.pack(">q", milliseconds)), 0, 1_000)[0]
    request = ControllerRequest(api_key=api_key, api_version=2, body=body, principal=ALICE)
    answers: list[Response] = []
    world.controller.handle_request(world.now_ms, request, answers.append)
    world.commit()
    return read_answer(api_key, 2, answers[0])


@pytest.mark.parametrize("milliseconds", EXTREMES)
@pytest.mark.parametrize("longest_ms", [7 * 86_400_000, 2**63 - 1])
def test_no_time_of_a_token_overflows(milliseconds: int, longest_ms: int) -> None:
    """The sum of now and a period of 64 bits is in no record, and an error in the controller costs it leadership."""
    world = token_world(
        delegation_token_max_lifetime_ms=longest_ms, delegation_token_expiry_time_ms=longest_ms
    )
    password = create(world).hmac
    latest_ms = min(world.now_ms + longest_ms, END_OF_9999_MS)
    for api_key, field in ((RENEW, "renew_period"), (EXPIRE, "expiry_time_period")):
        if milliseconds < 0 and api_key is EXPIRE:
            continue
        assert asked_with(world, api_key, field, milliseconds, hmac=password).error_code == 0
        assert world.now_ms <= the_token(world).expiration_timestamp_ms <= latest_ms
        if milliseconds == 0 and api_key is EXPIRE:
            assert is_expired(the_token(world), world.now_ms + 1)
    if milliseconds < 0:
        assert asked_with(world, EXPIRE, "expiry_time_period", milliseconds, hmac=password).error_code == 0
        assert not world.controller.committed_image.security.delegation_tokens
    made = asked_with(world, CREATE, "max_lifetime", milliseconds, renewers=[])
    assert made.error_code == 0
    assert world.now_ms < made.expiry_timestamp_ms <= made.max_timestamp_ms <= latest_ms
    assert world.controller.is_active


def test_allow_everyone_ends_with_the_first_acl_of_a_resource_and_begins_again_after_the_last() -> None:
    """As in Kafka: an ACL for any principal closes its resource to all others."""
    opened, closed = authorizer(allow_everyone=True), authorizer()
    for_bob = acl(Operation.READ, "orders", principal=BOB)
    on_prefix = acl(Operation.READ, "ord", principal=BOB, pattern_type=PREFIXED)

    def may(
        who: str, *entries: Any, by: Any = opened, name: str = "orders", kind: int = ResourceType.TOPIC
    ) -> bool:
        return bool(by.allows(acls_of(entries), who, HERE, Operation.READ, kind, name))

    assert may(ALICE)
    assert not may(ALICE, by=closed)
    for entry in (for_bob, on_prefix):
        assert may(BOB, entry)
        assert not may(ALICE, entry), "an ACL for another closes the resource"
        assert may(ALICE, entry, name="payments"), "and no other one"
        assert opened.allows(
            acls_of([entry]), ALICE, HERE, Operation.ALTER, ResourceType.CLUSTER, "kafka-cluster"
        )
    assert may(ALICE), "without its last ACL the resource is open again"


@pytest.mark.parametrize("protocol", ["SASL_PLAINTEXT", "PLAINTEXT"])
@pytest.mark.parametrize("host", ["0.0.0.0", "", "[::]", "10.1.2.3", "broker.example"])
def test_passwords_do_not_cross_a_network_unless_it_is_said(
    tmp_path: Path, protocol: str, host: str, capsys: pytest.CaptureFixture[str]
) -> None:
    values = {
        "process.roles": "broker,controller",
        "listeners": f"CLIENTS://{host}:9092,CONTROLLER://127.0.0.1:9093",
        "advertised.listeners": "CLIENTS://broker.example:9092",
        "listener.security.protocol.map": f"CLIENTS:{protocol},CONTROLLER:PLAINTEXT",
        "listener.name.clients.sasl.enabled.mechanisms": "PLAIN",
        "listener.name.clients.plain.sasl.jaas.config": 'PlainLoginModule required user_alice="alice-secret";',
    }
    config = write_config(tmp_path, values)
    assert run(["start", "-c", str(config), "--node", "1"]) == 2
    told = capsys.readouterr().err
    assert "kquorum.allow.unsecured.listeners" in told
    assert "SASL_SSL" in told
    assert "alice-secret" not in told
    assert not (tmp_path / "data").exists()
