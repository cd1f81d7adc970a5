"""What the audit note of a forwarded request tells the broker that lost the answer."""

from typing import Any

import pytest

from kquorum.metadata.authorizer.codes import Operation, ResourceType
from kquorum.metadata.forwarding import tells_error
from kquorum.wire.forwarding_id import forwarding_fields, forwarding_id_of
from kquorum.wire.metadata_records.features import NoOpRecord
from kquorum.wire.operator_reason import reason_fields
from kquorum.wire.proto.audit_pb2 import AuditNote
from kquorum.wire.protocol.api_keys import ApiKey
from tests.support.acl_worlds import acl, creation
from tests.support.controller_world import audit_notes
from tests.support.metadata.listener_world import ListenerWorld

ID = bytes(range(16))
MAY_CREATE = acl(Operation.CREATE, "new", ResourceType.TOPIC)


def last_note(world: ListenerWorld) -> AuditNote:
    carriers = [each for each in world.world.raft.records() if isinstance(each, NoOpRecord)]
    return [note for carrier in carriers for note in audit_notes(carrier)][-1]


def test_the_note_holds_the_id_of_the_envelope_and_not_of_what_is_inside() -> None:
    world = ListenerWorld().allow(MAY_CREATE)
    world.forward(ApiKey.CREATE_TOPICS, creation("new"), header_fields=forwarding_fields(ID))
    note = last_note(world)
    assert (note.forwarding_id, note.is_whole, note.correlation_id) == (ID, True, 99)


def test_a_client_at_the_controller_itself_cannot_name_an_id() -> None:
    world = ListenerWorld().allow(MAY_CREATE)
    world.ask(ApiKey.CREATE_TOPICS, creation("new"), header_fields=forwarding_fields(ID))
    note = last_note(world)
    assert (note.reason, note.forwarding_id, note.is_whole) == ("create topics: new", b"", False)


@pytest.mark.parametrize("case", ["not allowed", "refused"])
def test_what_was_done_in_part_is_not_whole(case: str) -> None:
    world = ListenerWorld().allow(MAY_CREATE, acl(Operation.CREATE, "bad name", ResourceType.TOPIC))
    names = ("new", "other" if case == "not allowed" else "bad name")
    answer = world.forward(ApiKey.CREATE_TOPICS, creation(*names), header_fields=forwarding_fields(ID))
    assert {entry.name for entry in answer.topics} == set(names)
    note = last_note(world)
    assert (note.reason, note.forwarding_id, note.is_whole) == ("create topics: new", ID, False)


def test_only_an_id_of_the_right_size_counts_among_other_fields() -> None:
    assert forwarding_id_of(reason_fields("why") + forwarding_fields(ID) + ((9000, ID),)) == ID
    assert forwarding_id_of(forwarding_fields(ID[:-1])) == b""
    assert forwarding_id_of(reason_fields("why")) == b""


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"error_code": 0, "topics": ()}, False),
        ({"error_code": 3}, True),
        ({"topics": [{"error_code": 0}, {"error_code": 3}]}, True),
        ({"error_code": 0, "responses": [{"name": "a", "partitions": [{"error_code": 0}]}]}, False),
        ({"error_code": 0, "responses": [{"name": "a", "partitions": [{"error_code": 84}]}]}, True),
        # Of what stands inside an entry only the entry tells.
        ({"topics": [{"error_code": 0, "configs": [{"error_code": 3}]}]}, False),
    ],
)
def test_any_entry_may_tell_an_error(values: Any, expected: bool) -> None:
    assert tells_error(values) is expected
