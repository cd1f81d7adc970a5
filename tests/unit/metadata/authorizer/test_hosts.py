"""ACLs for addresses, in whichever form the address is written on either side."""

import pytest

from kquorum.metadata.authorizer.acl_index import AclIndex, Decision
from kquorum.metadata.authorizer.codes import Operation, ResourceType
from kquorum.wire.addresses import normal_address
from tests.support.acl_worlds import ALICE, DENY, acl

# Java's InetAddress.getHostAddress writes IPv6 in full, and IPv4 within IPv6 as IPv4; Python's sockets do neither.
SAME = [
    ("0:0:0:0:0:0:0:1", "::1"),
    ("2001:db8:0:0:0:0:0:a", "2001:DB8::A"),
    ("10.1.2.3", "::ffff:10.1.2.3"),
    ("fe80:0:0:0:0:0:0:1%eth0", "fe80::1"),
    ("broker.example.org", "broker.example.org"),
]


def decide(index: AclIndex, host: str) -> Decision:
    return index.decide(ALICE, host, Operation.READ, ResourceType.TOPIC, "t")


@pytest.mark.parametrize("pair", SAME)
def test_a_denial_holds_for_an_address_in_every_form(pair: tuple[str, str]) -> None:
    for written, seen in (pair, pair[::-1]):
        index = AclIndex()
        index.add(acl(Operation.READ, "t"))
        index.add(denial := acl(Operation.READ, "t", host=written, permission_type=DENY))
        assert decide(index, seen) is Decision.DENIED
        operations = index.allowed_operations(ALICE, seen, ResourceType.TOPIC, "t", [Operation.READ])
        assert operations == set()
        assert not index.allows_any(ALICE, seen, Operation.READ, ResourceType.TOPIC)
        index.remove(denial)
        assert decide(index, seen) is Decision.ALLOWED


@pytest.mark.parametrize("host", ["::2", "127.0.0.1", "10.1.2.3", "", "broker.example.org"])
def test_other_addresses_stay_others(host: str) -> None:
    index = AclIndex()
    index.add(acl(Operation.READ, "t", host="0:0:0:0:0:0:0:1"))
    assert decide(index, host) is Decision.DENIED
    assert decide(index, "::1") is Decision.ALLOWED


def test_anywhere_is_no_address() -> None:
    assert normal_address("*") == "*"
