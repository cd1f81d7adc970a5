"""`kquorum groups` against a broker that answers what each test says."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID

import pytest

from kquorum.cli.failures import ExitStatus
from kquorum.cli.main import run
from kquorum.wire.message_codec import encode
from kquorum.wire.message_schema import Response
from kquorum.wire.messages import consumer_group_describe
from kquorum.wire.messages.consumer_group_describe import ConsumerGroupDescribeResponse, TopicPartitions
from kquorum.wire.messages.consumer_protocol_assignment import ConsumerProtocolAssignment, TopicPartition
from kquorum.wire.messages.delete_groups import DeletableGroupResult, DeleteGroupsResponse
from kquorum.wire.messages.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsResponse,
)
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.messages.find_coordinator import Coordinator, FindCoordinatorResponse
from kquorum.wire.messages.list_groups import ListedGroup, ListGroupsResponse
from kquorum.wire.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from kquorum.wire.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kquorum.wire.messages.offset_commit import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from kquorum.wire.messages.offset_fetch import (
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from kquorum.wire.protocol.apis import ApiKey
from tests.support.fake_nodes import FakeNode, fake_node

TOPIC_ID = UUID(int=7)
BROKER = 5
PART = b"\x00\x00" + encode(
    ConsumerProtocolAssignment(assigned_partitions=(TopicPartition(topic="orders", partitions=(0,)),)), 0
)


@contextmanager
def broker(**answers: Any) -> Iterator[FakeNode]:
    """It coordinates the group readers, and leads orders-0 and orders-1, which end at 50. `answers` are by the name
    of an API."""
    found: list[FakeNode] = []

    def metadata(request: Any) -> MetadataResponse:
        partitions = tuple(
            MetadataResponsePartition(partition_index=index, leader_id=BROKER) for index in (0, 1)
        )
        topic = MetadataResponseTopic(name="orders", topic_id=TOPIC_ID, partitions=partitions)
        here = MetadataResponseBroker(node_id=BROKER, host="127.0.0.1", port=found[0].port)
        return MetadataResponse(brokers=(here,), topics=() if request.topics == () else (topic,))

    def coordinator(request: Any) -> FindCoordinatorResponse:
        [key] = request.coordinator_keys
        here = Coordinator(key=key, node_id=BROKER, host="127.0.0.1", port=found[0].port)
        return FindCoordinatorResponse(coordinators=(here,))

    def ends(request: Any) -> ListOffsetsResponse:
        [topic] = request.topics
        partitions = tuple(
            ListOffsetsPartitionResponse(
                partition_index=each.partition_index, offset=0 if each.timestamp == -2 else 50
            )
            for each in topic.partitions
        )
        return ListOffsetsResponse(topics=(ListOffsetsTopicResponse(name=topic.name, partitions=partitions),))

    fixed: dict[str, Response] = {
        "consumer_group_describe": NO_CONSUMER_GROUP,
        "describe_groups": DescribeGroupsResponse(groups=(DESCRIBED,)),
        "offset_fetch": OffsetFetchResponse(groups=(FETCHED,)),
        "list_groups": ListGroupsResponse(),
        "delete_groups": DeleteGroupsResponse(),
        "offset_commit": OffsetCommitResponse(),
    } | answers
    given: dict[ApiKey, Callable[[Any], Response]] = {
        ApiKey.METADATA: metadata,
        ApiKey.FIND_COORDINATOR: coordinator,
        ApiKey.LIST_OFFSETS: ends,
    }
    given |= {ApiKey[name.upper()]: (lambda _, answer=answer: answer) for name, answer in fixed.items()}
    with fake_node(given) as node:
        found.append(node)
        yield node


NO_CONSUMER_GROUP = ConsumerGroupDescribeResponse(
    groups=(consumer_group_describe.DescribedGroup(error_code=ErrorCode.group_id_not_found),)
)
MINE = (TopicPartitions(topic_id=TOPIC_ID, topic_name="orders", partitions=(0,)),)
BOTH = (TopicPartitions(topic_id=TOPIC_ID, topic_name="orders", partitions=(0, 1)),)
CONSUMERS = ConsumerGroupDescribeResponse(
    groups=(
        consumer_group_describe.DescribedGroup(
            group_id="readers",
            group_state="Reconciling",
            group_epoch=4,
            assignment_epoch=4,
            assignor_name="uniform",
            members=(
                consumer_group_describe.Member(
                    member_id="m-1",
                    member_epoch=3,
                    client_id="m",
                    client_host="/10.0.0.1",
                    subscribed_topic_names=("orders",),
                    subscribed_topic_regex="ord.*",
                    assignment=consumer_group_describe.Assignment(topic_partitions=MINE),
                    target_assignment=consumer_group_describe.Assignment(topic_partitions=BOTH),
                    member_type=1,
                ),
            ),
        ),
    )
)
DESCRIBED = DescribedGroup(
    group_id="readers",
    group_state="Stable",
    protocol_type="consumer",
    protocol_data="range",
    members=(
        DescribedGroupMember(member_id="m-1", client_id="m", client_host="/10.0.0.1", member_assignment=PART),
    ),
)
FETCHED = OffsetFetchResponseGroup(
    group_id="readers",
    topics=(
        OffsetFetchResponseTopics(
            topic_id=TOPIC_ID,
            partitions=tuple(
                OffsetFetchResponsePartitions(partition_index=index, committed_offset=20 + index)
                for index in (0, 1)
            ),
        ),
    ),
)


def committed(error: ErrorCode) -> OffsetCommitResponse:
    partition = OffsetCommitResponsePartition(partition_index=0, error_code=error)
    return OffsetCommitResponse(
        topics=(OffsetCommitResponseTopic(topic_id=TOPIC_ID, partitions=(partition,)),)
    )


def deleted(error: ErrorCode) -> DeleteGroupsResponse:
    return DeleteGroupsResponse(results=(DeletableGroupResult(group_id="readers", error_code=error),))


def ask(node: FakeNode, *arguments: str) -> int:
    return run(["groups", *arguments, "--bootstrap-server", node.address, "--timeout-ms", "5000"])


def test_groups_of_all_brokers_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    group = ListedGroup(
        group_id="readers", protocol_type="consumer", group_state="Stable", group_type="classic"
    )
    with broker(list_groups=ListGroupsResponse(groups=(group,))) as node:
        assert ask(node, "list", "--json") == 0
        [listed] = json.loads(capsys.readouterr().out)
        assert listed == {
            "group": "readers",
            "state": "Stable",
            "type": "classic",
            "protocol_type": "consumer",
        }
        assert ask(node, "list") == 0
    assert "readers   Stable   classic   consumer" in capsys.readouterr().out


def test_a_description_has_members_and_lag(capsys: pytest.CaptureFixture[str]) -> None:
    with broker() as node:
        assert ask(node, "describe", "readers", "--json") == 0
        told = json.loads(capsys.readouterr().out)
        assert (told["state"], told["protocol"], told["coordinator"]) == ("Stable", "range", BROKER)
        assert told["members"][0]["partitions"] == [["orders", 0]]
        assert [
            (each["committed"], each["end"], each["lag"], each["member_id"]) for each in told["offsets"]
        ] == [
            (20, 50, 30, "m-1"),
            (21, 50, 29, None),
        ]
        assert ask(node, "describe", "readers") == 0
    said = f"classic group readers: Stable, protocol range, coordinated by broker {BROKER}"
    assert said in capsys.readouterr().out


def test_a_consumer_group_has_epochs_and_targets(capsys: pytest.CaptureFixture[str]) -> None:
    with broker(consumer_group_describe=CONSUMERS) as node:
        assert ask(node, "describe", "readers", "--json") == 0
        told = json.loads(capsys.readouterr().out)
        assert (told["type"], told["state"], told["epoch"], told["protocol"]) == (
            "consumer",
            "Reconciling",
            4,
            "uniform",
        )
        [member] = told["members"]
        assert (member["epoch"], member["speaks_classic"], member["subscription"]) == (
            3,
            False,
            "orders /ord.*/",
        )
        assert member["target"] == [["orders", 0], ["orders", 1]]
        assert [each["member_id"] for each in told["offsets"]] == ["m-1", None]
        assert ask(node, "describe", "readers") == 0
    said = capsys.readouterr().out
    assert "consumer group readers: Reconciling, assignor uniform, epoch 4, assignment epoch 4" in said


def test_a_group_is_shown_again_and_again(capsys: pytest.CaptureFixture[str]) -> None:
    with broker(consumer_group_describe=CONSUMERS) as node:
        watched = ("--watch", "--limit", "2", "--interval-ms", "100", "--json")
        assert ask(node, "describe", "readers", *watched) == 0
        assert [json.loads(line)["epoch"] for line in capsys.readouterr().out.splitlines()] == [4, 4]
        assert ask(node, "describe", "readers", *watched[:-1]) == 0
    assert capsys.readouterr().out.count("assignment epoch 4") == 2


def test_a_group_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    absent = DescribedGroup(group_state="Dead", error_code=ErrorCode.group_id_not_found)
    answers = {
        "describe_groups": DescribeGroupsResponse(groups=(absent,)),
        "delete_groups": deleted(ErrorCode.group_id_not_found),
    }
    with broker(**answers) as node:
        assert ask(node, "describe", "readers") == ExitStatus.FAILED
        assert ask(node, "delete", "readers") == ExitStatus.FAILED
    said = capsys.readouterr().err
    assert "there is no consumer group readers, and no classic one" in said
    assert "there is no group readers" in said


def test_offsets_are_set_at_the_coordinator(capsys: pytest.CaptureFixture[str]) -> None:
    with broker(offset_commit=committed(ErrorCode.none)) as node:
        assert ask(node, "reset-offsets", "readers", "-t", "orders", "-p", "0", "--to", "-5", "--json") == 0
        [request] = [each for each in node.requests if each.api_key == ApiKey.OFFSET_COMMIT]
    [topic] = request.topics
    assert (topic.topic_id, topic.partitions[0].committed_offset) == (TOPIC_ID, 45)
    assert (request.generation_id_or_member_epoch, request.member_id) == (-1, "")
    assert json.loads(capsys.readouterr().out) == {
        "group": "readers",
        "changed": True,
        "offsets": [{"topic": "orders", "partition": 0, "offset": 45}],
    }


def test_a_dry_run_changes_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with broker() as node:
        assert ask(node, "reset-offsets", "readers", "-t", "orders", "--to", "7", "--dry-run") == 0
        assert not [each for each in node.requests if each.api_key == ApiKey.OFFSET_COMMIT]
    assert "offsets of group readers would be set" in capsys.readouterr().out


def test_a_group_with_members_is_left_alone(capsys: pytest.CaptureFixture[str]) -> None:
    answers = {
        "offset_commit": committed(ErrorCode.unknown_member_id),
        "delete_groups": deleted(ErrorCode.non_empty_group),
    }
    with broker(**answers) as node:
        reset = ("reset-offsets", "readers", "-t", "orders", "-p", "0", "--to", "end")
        assert ask(node, *reset) == ExitStatus.FAILED
        assert "stop them before its offsets are reset" in capsys.readouterr().err
        assert ask(node, "delete", "readers") == ExitStatus.FAILED
        assert "stop them before the group is deleted" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [(("--to", "soon"), "--to soon"), (("--to", "end", "-p", "9"), "topic orders has no partition 9")],
)
def test_what_cannot_be_set(
    arguments: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with broker() as node:
        assert ask(node, "reset-offsets", "readers", "-t", "orders", *arguments) != 0
    assert said in capsys.readouterr().err
