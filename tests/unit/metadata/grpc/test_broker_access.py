"""The rights that calls of the service `Broker` need under an authorizer."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import grpc
import pytest

from kquorum.metadata.authorizer.authorizer import Authorizer, AuthorizerConfig
from kquorum.metadata.authorizer.codes import Operation
from kquorum.metadata.authorizer.gate import RequestAuthorizer
from kquorum.metadata.grpc.access import MemberGate, Refused, host_of
from kquorum.metadata.grpc.broker.service import BrokerCalls
from kquorum.metadata.image.image import MetadataImage
from kquorum.network.security.distinguished_names import parse_mapping_rules, principal_of_certificate
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.proto import broker_pb2 as pb
from kquorum.wire.proto.broker_pb2_grpc import BrokerStub
from kquorum.wire.protocol.api_keys import ApiKey
from tests.support.acl_worlds import acl, acls_of, authorizer
from tests.support.certificates import authority, issued
from tests.support.grpc_harness import failure_of, run, serving, tls_of
from tests.support.grpc_source import FakeSource
from tests.support.metadata.grpc_callers import HERE, MEMBER, Caller, certificate
from tests.support.metadata.member_world import MEMBERSHIP, member_rig
from tests.support.metadata.watching import NoCallsExpected

principal_of = principal_of_certificate(parse_mapping_rules(""))


def key(pem: str) -> str:
    return pem[: pem.index("-----BEGIN CERTIFICATE")]


def member() -> str:
    return certificate(issued("member"))


def gate(*operations: Operation, who: Authorizer | None = None) -> MemberGate:
    entries = acls_of(acl(operation, principal=MEMBER, host=HERE) for operation in operations)
    empty = MetadataImage.empty()
    image = replace(empty, security=replace(empty.security, acls=entries))
    return MemberGate(RequestAuthorizer(who or authorizer()), lambda: image, principal_of)


def refusal(found: MemberGate, caller: Caller, api_key: ApiKey) -> Refused:
    with pytest.raises(Refused) as caught:
        found.check(caller, api_key)
    return caught.value


def test_a_member_is_who_its_certificate_says_and_may_what_the_acls_say() -> None:
    acting = gate(Operation.CLUSTER_ACTION)
    for api_key in (
        ApiKey.BROKER_REGISTRATION,
        ApiKey.BROKER_HEARTBEAT,
        ApiKey.ALTER_PARTITION,
        ApiKey.FETCH,
    ):
        acting.check(Caller(member()), api_key)
        assert refusal(acting, Caller(), api_key).error is ErrorCode.cluster_authorization_failed
        assert str(refusal(acting, Caller(), api_key)) == "User:ANONYMOUS lacks CLUSTER_ACTION on the cluster"
        refusal(acting, Caller(member(), host="10.0.0.2"), api_key)
    assert "lacks ALTER" in str(refusal(acting, Caller(member()), ApiKey.UNREGISTER_BROKER))
    gate(Operation.ALTER).check(Caller(member()), ApiKey.UNREGISTER_BROKER)


def test_a_node_that_has_not_loaded_the_acls_refuses_all_with_a_retriable_error() -> None:
    unloaded = gate(Operation.ALL, who=Authorizer(AuthorizerConfig(), lambda: False))
    found = refusal(unloaded, Caller(member()), ApiKey.FETCH)
    assert (found.error, "ask again" in str(found)) == (ErrorCode.not_controller, True)


@pytest.mark.parametrize("who", [None, authorizer()])
def test_a_certificate_that_no_rule_fits_is_refused(who: Authorizer | None) -> None:
    named = principal_of_certificate(parse_mapping_rules("RULE:^CN=(other)$/$1/"))
    found = refusal(
        MemberGate(RequestAuthorizer(who), MetadataImage.empty, named), Caller(member()), ApiKey.FETCH
    )
    assert found.error is ErrorCode.cluster_authorization_failed
    assert "no rule of ssl.principal.mapping.rules fits its certificate 'CN=member'" in str(found)


def test_without_an_authorizer_no_principal_is_needed() -> None:
    MemberGate(RequestAuthorizer(None), MetadataImage.empty, principal_of).check(Caller(), ApiKey.FETCH)


@pytest.mark.parametrize(
    ("peer", "host"),
    [
        ("ipv4:10.0.0.1:4711", "10.0.0.1"),
        ("ipv6:%5B::1%5D:4711", "::1"),
        ("ipv6:[fe80::1]:4711", "fe80::1"),
        ("unix:/tmp/x:1", ""),
        ("", ""),
    ],
)
def test_the_address_of_a_peer(peer: str, host: str) -> None:
    assert host_of(peer) == host


def test_every_call_is_judged() -> None:
    async def main() -> list[tuple[grpc.StatusCode, str]]:
        async with member_rig(gate=RequestAuthorizer(authorizer()), principal_of=principal_of) as rig:
            calls = [
                rig.register(5),
                rig.heartbeat(5, 1),
                rig.stub.AlterPartition(pb.AlterPartitionRequest()),
                rig.stub.Unregister(pb.UnregisterRequest()),
                rig.stub.Watch(pb.WatchRequest()).read(),
            ]
            errors = [await failure_of(call) for call in calls]
            assert rig.others.asked == rig.heartbeats.asked == []
            return [(error.code(), (error.details() or "").partition(" lacks ")[0]) for error in errors]

    said = "CLUSTER_AUTHORIZATION_FAILED: User:ANONYMOUS"
    assert run(main) == [(grpc.StatusCode.PERMISSION_DENIED, said)] * 5


def test_over_mutual_tls_the_client_is_named_by_its_certificate() -> None:
    server, client, ca = issued("server", "localhost"), issued("member"), authority().pem

    async def main() -> list[tuple[str, str]]:
        judged: list[tuple[str, str]] = []

        def named(der: bytes | None) -> str:
            judged.append((principal_of(der), "" if der is None else "a certificate"))
            return principal_of(der)

        source = FakeSource()
        member_gate = MemberGate(RequestAuthorizer(authorizer()), source.committed_image, named)
        calls = BrokerCalls(MEMBERSHIP, NoCallsExpected(), NoCallsExpected())
        security = tls_of(
            {
                "ssl.keystore.type": "PEM",
                "ssl.keystore.certificate.chain": certificate(server),
                "ssl.keystore.key": key(server),
                "ssl.truststore.type": "PEM",
                "ssl.truststore.certificates": ca.decode(),
                "ssl.client.auth": "required",
            }
        )
        async with serving(source, broker_calls=calls, gate=member_gate, security=security) as rig:
            address = f"localhost:{rig.server.bound_port}"
            credentials = grpc.ssl_channel_credentials(ca, key(client).encode(), certificate(client).encode())
            async with grpc.aio.secure_channel(address, credentials) as channel:
                make_stub: Callable[[grpc.aio.Channel], Any] = BrokerStub
                error = await failure_of(make_stub(channel).Register(pb.RegisterRequest()))
                assert error.code() is grpc.StatusCode.PERMISSION_DENIED
                assert "User:CN=member lacks" in (error.details() or "")
        return judged

    # Once for the count of its calls, and once for its rights.
    assert run(main) == [(MEMBER, "a certificate")] * 2
