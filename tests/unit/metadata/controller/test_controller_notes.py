"""The audit notes of a controller: who asked for what, each with the hash of the one before."""

import hashlib

from kquorum.metadata.controller.requests import ControllerRequest
from kquorum.wire.metadata_records.features import NoOpRecord
from kquorum.wire.metadata_records.topics import TopicRecord
from kquorum.wire.protocol.api_keys import ApiKey
from tests.support.api_calls import request_of
from tests.support.controller_world import World, audit_notes, topic
from tests.support.kio.classes import request_class
from tests.support.kio.entities import build


def test_administrative_changes_carry_chained_audit_notes() -> None:
    world = World().lead().add_brokers(0)
    start = world.raft.log_end_offset
    world.create({"name": "a", "num_partitions": 2})
    world.delete("a")
    records = world.raft.records(start)
    carriers = [record for record in records if isinstance(record, NoOpRecord)]
    first, second = [audit_notes(carrier)[0] for carrier in carriers]
    assert (first.principal, first.client_id, first.client_address) == ("User:alice", "admin", "10.0.0.7")
    assert (first.api_key, first.correlation_id, first.covered_records) == (19, 17, 3)
    assert first.reason == "create topics: a"
    assert first.previous_note_hash == b""
    value = carriers[0].unknown_tagged_fields[0][1]
    assert second.previous_note_hash == hashlib.sha256(value).digest()
    assert (second.api_key, second.covered_records, second.reason) == (20, 1, "delete topics: a")
    assert isinstance(records[records.index(carriers[0]) + 1], TopicRecord)


def test_audit_chain_goes_on_under_the_next_controller() -> None:
    world = World().lead().add_brokers(0)
    world.create({"name": "a"})
    lost = world.send(ApiKey.CREATE_TOPICS, 7, topics=[topic("lost")], timeout=1000)
    world.follow(1, 2)
    assert lost
    world.raft.truncate_uncommitted()
    world.lead(3)
    world.create({"name": "b"})
    carriers = [each for each in world.raft.records() if isinstance(each, NoOpRecord) and audit_notes(each)]
    assert len(carriers) == 2
    first = carriers[0].unknown_tagged_fields[0][1]
    assert audit_notes(carriers[1])[0].previous_note_hash == hashlib.sha256(first).digest()


def test_refused_and_dry_requests_leave_no_note() -> None:
    world = World().lead().add_brokers(0)
    start = world.raft.log_end_offset
    world.delete("absent")
    world.create({"name": "dry"}, validate_only=True)
    assert world.raft.records(start) == []


def test_a_note_says_why_in_the_operators_words() -> None:
    world = World().lead().add_brokers(0)
    body = request_of(ApiKey.CREATE_TOPICS, 7, {"topics": [topic("a")], "timeout": 1000})
    request = ControllerRequest(
        api_key=ApiKey.CREATE_TOPICS, api_version=7, body=body, operator_reason="for the spring sale"
    )
    world.controller.handle_request(world.now_ms, request, lambda _: None)
    (note,) = [
        audit_notes(each)[0]
        for each in world.raft.records()
        if isinstance(each, NoOpRecord) and audit_notes(each)
    ]
    assert (note.reason, note.operator_reason) == ("create topics: a", "for the spring sale")


def test_a_change_of_the_voters_is_noted_beside_a_record_of_no_effect() -> None:
    world = World().lead().add_brokers(0)
    start = world.raft.log_end_offset
    body = build(
        request_class(ApiKey.REMOVE_RAFT_VOTER, 0),
        {"cluster_id": None, "voter_id": 2, "voter_directory_id": None},
    )
    request = ControllerRequest(
        api_key=ApiKey.REMOVE_RAFT_VOTER, api_version=0, body=body, operator_reason="disk replaced"
    )
    world.controller.note_change(world.now_ms, request, "remove voter 2")
    carrier, covered = world.raft.records(start)
    assert isinstance(carrier, NoOpRecord)
    (note,) = audit_notes(carrier)
    assert (note.reason, note.operator_reason, note.covered_records) == ("remove voter 2", "disk replaced", 1)
    assert covered == NoOpRecord()
    world.follow(1, 2)
    end = world.raft.log_end_offset
    world.controller.note_change(world.now_ms, request, "remove voter 2")
    assert world.raft.log_end_offset == end
