"""What a node measures and tells as the leader, and by whose certificate it knows who calls its gRPC listener."""

import asyncio
from dataclasses import replace
from math import isnan
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kquorum.cli.main import run
from kquorum.metadata.authorizer.authorizer import CLASS_NAME
from kquorum.metadata.grpc.access import MemberGate, Refused
from kquorum.metadata.grpc.source import NotTheLeader
from kquorum.metadata.image.image import MetadataImage, Provenance
from kquorum.node.broker_calls import member_gate
from kquorum.node.cluster_node import ClusterNode
from kquorum.node.config.load import load_config
from kquorum.node.folders import NodeFolders
from kquorum.node.inspect_source import NodeInspectSource
from kquorum.node.members_source import NodeMembersSource
from kquorum.node.observability.latency import LatencyMeter
from kquorum.node.quorum_member import QuorumMember
from kquorum.raft.adapters.clock import MonotonicWallClock
from kquorum.raft.errors import NotLeaderError
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.protocol.api_keys import ApiKey
from tests.support.certificates import issued
from tests.support.config_files import SMALL, write_controller
from tests.support.metadata.grpc_callers import Caller, certificate

NODE_ID, NOW_MS = 11, 1_700_000_000_000
Some = SimpleNamespace


def image_at(offset: int, timestamp_ms: int = NOW_MS) -> MetadataImage:
    at = Provenance(last_contained_offset=offset, timestamp_ms=timestamp_ms)
    return replace(MetadataImage.empty(), provenance=at)


@pytest.mark.parametrize(("leader_id", "is_measured"), [(NODE_ID, True), (12, False), (-1, False)])
def test_only_who_appended_a_record_knows_how_long_its_commit_took(leader_id: int, is_measured: bool) -> None:
    node: Any = Some(
        member=Some(driver=Some(leader_id=leader_id)),
        config=Some(node_id=NODE_ID),
        clock=Some(now_ms=lambda: NOW_MS),
        commit_latency=LatencyMeter(),
    )
    ClusterNode._note_latency(node, image_at(1, NOW_MS - 30))
    assert isnan(node.commit_latency.average(NOW_MS)) is not is_measured
    assert not is_measured or node.commit_latency.maximum(NOW_MS) == 30


class Driver:
    """What was committed elsewhere is in the node's image once a linearizable read is through."""

    def __init__(self, node: Any, *, leads: bool) -> None:
        self._node = node
        self._leads = leads

    async def read_linearizable(self) -> int:
        await asyncio.sleep(0)
        if not self._leads:
            raise NotLeaderError(12, 3)
        self._node.committed_image = image_at(9)
        return 10


def members_of(*, leads: bool) -> NodeMembersSource:
    node: Any = Some(committed_image=image_at(5))
    node.member = Some(driver=Driver(node, leads=leads), who_leads=lambda what: f"not I: {what}")
    return NodeMembersSource(node)


def test_all_that_was_committed_anywhere_is_in_the_offset_to_wait_for() -> None:
    assert asyncio.run(members_of(leads=True).last_committed_offset()) == 9


def test_a_former_leader_knows_no_such_offset() -> None:
    with pytest.raises(NotTheLeader, match="not I: how far the brokers follow"):
        asyncio.run(members_of(leads=False).last_committed_offset())


@pytest.mark.parametrize(("known", "end", "told"), [(101, 100, 100), (99, 100, 99), (-1, 100, -1)])
def test_committed_records_are_announced_once_readable(known: int, end: int, told: int) -> None:
    """An answer to a Fetch has the records and says that they are committed; the log gets them a moment later."""
    member: Any = Some(node=Some(high_watermark=known), log=Some(end_offset=end))
    unused: Any = None
    assert NodeInspectSource(member, unused, unused).high_watermark() == told


def gate_of_grpc(tmp_path: Path, super_user: str) -> MemberGate:
    path = tmp_path / "quorum.toml"
    lines = (
        f'"authorizer.class.name" = "{CLASS_NAME}"',
        f'"super.users" = ["{super_user}", "User:ANONYMOUS"]',
        '"ssl.principal.mapping.rules" = "RULE:^CN=(.*)$/node-$1/,DEFAULT"',
    )
    path.write_text(SMALL.replace("[defaults]\n", "\n".join(("[defaults]", *lines, ""))))
    member: Any = Some(
        now_ms=lambda: NOW_MS,
        ms_since_commit=lambda: 0,
        driver=Some(high_watermark=6),
    )
    return member_gate(load_config(path).node(NODE_ID), member, lambda: image_at(5))


def test_members_are_named_by_the_configs_certificate_rules(tmp_path: Path) -> None:
    ours, others = Caller(certificate(issued("a"))), Caller(certificate(issued("b")))
    gate = gate_of_grpc(tmp_path, "User:node-a")
    gate.check(ours, ApiKey.BROKER_REGISTRATION)
    with pytest.raises(Refused, match="User:node-b lacks CLUSTER_ACTION") as caught:
        gate.check(others, ApiKey.BROKER_REGISTRATION)
    assert caught.value.error is ErrorCode.cluster_authorization_failed


@pytest.mark.parametrize("joins", [True, False])
def test_the_watch_of_the_voters_knows_whether_the_node_joins_by_itself(tmp_path: Path, joins: bool) -> None:
    config_path = write_controller(
        tmp_path,
        'controller.quorum.bootstrap.servers = "127.0.0.1:9191"',
        f"controller.quorum.auto.join.enable = {str(joins).lower()}",
    )
    assert run(["format", "-c", str(config_path), "--node", "1", "--standalone"]) == 0
    config, clock = load_config(config_path).node(1), MonotonicWallClock()
    folders = NodeFolders(config, clock.now_ms())

    async def main() -> None:
        member = QuorumMember(config, folders, clock, lambda error: None)
        assert member._voter_watch._joins_by_itself is joins

    try:
        asyncio.run(main())
    finally:
        folders.release()
