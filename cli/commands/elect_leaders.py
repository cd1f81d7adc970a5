"""`kquorum elect-leaders`: elect the preferred leaders, or unclean leaders of partitions that have none."""

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from kquorum.cli.command_tree import Command, Panel
from kquorum.cli.options import AsJson, BootstrapServer, DryRun, MaybeConfigPath, Reason, TimeoutMs

if TYPE_CHECKING:
    from kquorum.cli.clients.cluster_client import ClusterClient
    from kquorum.cli.commands.topics.topic_client import PartitionView


class Election(StrEnum):
    PREFERRED = "preferred"
    UNCLEAN = "unclean"


# ElectionType of the protocol.
_CODES = {Election.PREFERRED: 0, Election.UNCLEAN: 1}
# The controller decides about so many in one turn, and writes them in one batch.
_AT_ONCE = 1000
Place = tuple[str, int]


def elect_leaders(
    kind: Annotated[
        Election,
        typer.Option("--type", help="preferred: the first replica; unclean: any, if there is no leader."),
    ] = Election.PREFERRED,
    topic: Annotated[
        list[str] | None, typer.Option("--topic", "-t", metavar="NAME", help="A topic; may be repeated.")
    ] = None,
    partition: Annotated[
        list[int] | None,
        typer.Option("--partition", "-p", min=0, help="Only this one of the topic; may be repeated."),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="All partitions that need it.")] = False,
    dry_run: DryRun = False,
    reason: Reason = None,
    config: MaybeConfigPath = None,
    bootstrap_server: BootstrapServer = None,
    timeout_ms: TimeoutMs = 30_000,
    as_json: AsJson = False,
) -> None:
    """Elect leaders of partitions. One that needs no election is a success.

    An unclean election may lose acknowledged records: those that the elected replica does not have. Start the brokers
    of the in-sync replicas instead, if you can.
    """
    from kquorum.cli.clients.cluster_client import ask_brokers
    from kquorum.cli.commands.topics.topic_client import describe_topics
    from kquorum.cli.failures import CliError, check_refusals
    from kquorum.cli.output import print_json, print_table
    from kquorum.wire.wording import counted

    if bool(topic) == every:
        raise typer.BadParameter("name topics with --topic, or else all partitions with --all")
    if partition and len(topic or ()) != 1:
        raise typer.BadParameter("--partition is of one topic: name it with --topic")

    async def change(client: "ClusterClient") -> "tuple[list[tuple[Place, PartitionView]], dict[Place, str]]":
        topics = await describe_topics(client, None if every else topic)
        places = {(each.name, item.partition_id): item for each in topics for item in each.partitions}
        if absent := [each for each in partition or () if ((topic or [""])[0], each) not in places]:
            raise CliError(f"topic {(topic or [''])[0]} has no partition {absent[0]}")
        chosen = {place: item for place, item in places.items() if not partition or place[1] in partition}
        needing = [(place, item) for place, item in chosen.items() if _needs(kind, item)]
        refused = (
            {} if dry_run or not needing else await _elect(client, kind, [p for p, _ in needing], timeout_ms)
        )
        return needing, refused

    needing, refused = ask_brokers(config, bootstrap_server, timeout_ms, change, reason)
    rows = [
        {
            "topic": name,
            "partition": index,
            "leader": item.leader,
            "preferred": item.replicas[0],
            "outcome": refused.get((name, index), "would be elected" if dry_run else "elected"),
        }
        for (name, index), item in needing
    ]
    if as_json:
        print_json(rows)
    else:
        print_table(
            f"{counted(len(rows), 'partition')} {'needs' if len(rows) == 1 else 'need'} an election",
            ("topic", "#partition", "#leader\nbefore", "#preferred", "~outcome"),
            [
                (row["topic"], row["partition"], _leader(row["leader"]), row["preferred"], row["outcome"])
                for row in rows
            ],
        )
    try:
        check_refusals(
            [f"{name}-{index}: {words}" for (name, index), words in refused.items()], "not elected"
        )
    except CliError as error:
        raise CliError(str(error), status=error.status, is_in_json=True) from None


def _leader(leader: object) -> object:
    return "none" if leader == -1 else leader


def _needs(kind: Election, item: "PartitionView") -> bool:
    return item.leader != item.replicas[0] if kind is Election.PREFERRED else item.leader < 0


async def _elect(
    client: "ClusterClient", kind: Election, places: list[Place], timeout_ms: int
) -> dict[Place, str]:
    """The refusals, in words. Raises CliError where the request as a whole is refused."""
    from kquorum.cli.clients.cluster_client import PendingRequest, check_change
    from kquorum.wire.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
    from kquorum.wire.messages.error_codes import ErrorCode

    refused: dict[Place, str] = {}
    doubt = "leaders may have been elected all the same: look with `kquorum topics describe`"
    for start in range(0, len(places), _AT_ONCE):
        by_topic: dict[str, list[int]] = {}
        for name, index in places[start : start + _AT_ONCE]:
            by_topic.setdefault(name, []).append(index)
        wanted = tuple(TopicPartitions(topic=name, partitions=tuple(ids)) for name, ids in by_topic.items())
        request = ElectLeadersRequest(
            election_type=_CODES[kind], topic_partitions=wanted, timeout_ms=timeout_ms
        )
        answer = await client.ask(PendingRequest(request=request, doubt=doubt))
        check_change(int(answer.error_code), None, "no leader was elected", doubt)
        for topic in answer.replica_election_results:
            for each in topic.partition_result:
                if each.error_code not in (ErrorCode.none, ErrorCode.election_not_needed):
                    words = f"{each.error_message or 'refused'} ({each.error_code.name.upper()})"
                    refused[topic.topic, each.partition_id] = words
    return refused


COMMAND = Command(
    run=elect_leaders,
    summary="Elect preferred or unclean leaders of partitions.",
    panel=Panel.ADMINISTER,
    place=1,
    examples={
        "": (
            "kquorum elect-leaders --all -c quorum.toml",
            "kquorum elect-leaders --topic orders --partition 3 -b localhost:9092",
            "kquorum elect-leaders --type unclean --topic orders -p 3 --dry-run",
        )
    },
)
