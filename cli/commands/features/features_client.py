"""Feature levels as nodes tell them (ApiVersions), and their change (UpdateFeatures)."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from kquorum.cli.clients.cluster_client import ClusterClient, PendingRequest, check_error
from kquorum.cli.clients.quorum_client import NOT_THE_LEADER
from kquorum.cli.failures import CliError, ExitStatus, usage_error
from kquorum.node.config.addresses import HostPort
from kquorum.wire.message_schema import ByVersion
from kquorum.wire.messages.api_versions import ApiVersionsRequest
from kquorum.wire.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest

Range = tuple[int, int]
DOUBT = "the levels may have been set all the same: look with `kquorum features describe`"
UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3
_FIRST_VERSION_WITH_UPGRADE_TYPE = 1
_NONE = (0, 0)


@dataclass(frozen=True, slots=True)
class NodeFeatures:
    """What one node tells: the levels that it can run, and those that are in force as far as it knows."""

    node: str
    ranges: Mapping[str, Range]
    finalized: Mapping[str, int]
    finalized_epoch: int


@dataclass(frozen=True, slots=True)
class FeaturesView:
    """`silent` says of each other node why it told nothing."""

    nodes: tuple[NodeFeatures, ...]
    silent: Mapping[str, str] = field(default_factory=dict)

    @property
    def newest(self) -> NodeFeatures:
        """A node that has the latest change."""
        return max(self.nodes, key=lambda node: node.finalized_epoch)

    @property
    def names(self) -> tuple[str, ...]:
        known = {name for node in self.nodes for name in node.ranges}
        return tuple(sorted(known | set(self.newest.finalized)))

    def common_range(self, name: str) -> Range | None:
        """What all of them can run; None where there is no such level."""
        ranges = [node.ranges.get(name, _NONE) for node in self.nodes]
        low, high = max(low for low, _ in ranges), min(high for _, high in ranges)
        return (low, high) if low <= high else None

    def differing(self, name: str) -> dict[str, Range]:
        """The nodes that cannot run all that others can."""
        common = {node.ranges.get(name, _NONE) for node in self.nodes}
        return {node.node: node.ranges.get(name, _NONE) for node in self.nodes} if len(common) > 1 else {}


async def look(nodes: Mapping[HostPort, str], timeout_ms: int) -> FeaturesView:
    """`nodes` are names by address. Raises CliError when none of them answers."""
    answers = await asyncio.gather(*(_ask(address, name, timeout_ms) for address, name in nodes.items()))
    found = tuple(answer for answer in answers if isinstance(answer, NodeFeatures))
    silent = {
        name: answer
        for name, answer in zip(nodes.values(), answers, strict=True)
        if not isinstance(answer, NodeFeatures)
    }
    if not found:
        statuses = {answer.status for answer in silent.values()}
        raise CliError(
            f"no node told its features: {'; '.join(map(str, silent.values()))}",
            status=ExitStatus.FAILED if ExitStatus.FAILED in statuses else ExitStatus.UNREACHABLE,
        )
    return FeaturesView(found, {name: str(answer) for name, answer in silent.items()})


async def _ask(address: HostPort, name: str, timeout_ms: int) -> NodeFeatures | CliError:
    """Or why not."""
    asked = ApiVersionsRequest(client_software_name="kquorum", client_software_version="1")
    try:
        async with ClusterClient((address,), timeout_ms) as client:
            versions = await client.ask(asked)
    except CliError as error:
        return error
    return NodeFeatures(
        node=name,
        ranges={each.name: (each.min_version, each.max_version) for each in versions.supported_features},
        finalized={each.name: each.max_version_level for each in versions.finalized_features},
        finalized_epoch=versions.finalized_features_epoch,
    )


async def set_levels(
    client: ClusterClient, levels: Mapping[str, int], upgrade_type: int, *, dry_run: bool
) -> None:
    """All of them or none. Raises CliError for a refusal."""

    def update(version: int, name: str, level: int) -> FeatureUpdateKey:
        if version < _FIRST_VERSION_WITH_UPGRADE_TYPE:
            return FeatureUpdateKey(
                feature=name, max_version_level=level, allow_downgrade=upgrade_type != UPGRADE
            )
        return FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=upgrade_type)

    def asked(version: int) -> UpdateFeaturesRequest:
        updates = tuple(update(version, name, level) for name, level in levels.items())
        return UpdateFeaturesRequest(
            timeout_ms=client.remaining_ms, feature_updates=updates, validate_only=dry_run
        )

    response = await client.ask(
        PendingRequest(
            request=ByVersion(UpdateFeaturesRequest, asked),
            accept=lambda response: int(response.error_code) not in NOT_THE_LEADER,
            doubt=None if dry_run else DOUBT,
        )
    )
    what = f"{_named(levels)} cannot be set" if dry_run else f"{_named(levels)} was not set"
    check_error(int(response.error_code), response.error_message, what)
    for result in response.results:
        check_error(int(result.error_code), result.error_message, what)


def _named(levels: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {level}" for name, level in levels.items())


def higher_levels(wanted: Mapping[str, int], view: FeaturesView) -> dict[str, int]:
    """Those of a release that are above what is in force, which an upgrade is to leave alone."""
    current = view.newest.finalized
    return {name: level for name, level in wanted.items() if level > current.get(name, 0)}


def parse_levels(texts: Iterable[str], metadata: str | None) -> dict[str, int]:
    """`--feature NAME=LEVEL`, and `--metadata` by level, name or release. Raises CliError."""
    from kquorum.cli.commands.features.metadata_versions import parse_metadata_version
    from kquorum.metadata.image.metadata_version import METADATA_VERSION

    levels: dict[str, int] = {}
    if metadata is not None:
        levels[METADATA_VERSION] = parse_metadata_version(metadata, "--metadata")
    for text in texts:
        name, _, level = text.partition("=")
        if not name or not level.isdecimal():
            raise usage_error(f"--feature: {text!r} is not NAME=LEVEL, such as group.version=1")
        if name in levels:
            raise usage_error(f"the level of {name} is given twice")
        levels[name] = int(level)
    return levels


def node_names(
    addresses: Sequence[HostPort], brokers: Mapping[HostPort, int], controllers: Mapping[HostPort, int]
) -> dict[HostPort, str]:
    """Addresses, each with what it is called; a node that is both is asked once."""
    ids = {**brokers, **controllers}
    named = {address: f"node {ids[address]}" if address in ids else str(address) for address in addresses}
    seen = set(named.values())
    for address, node_id in ids.items():
        if f"node {node_id}" not in seen:
            seen.add(f"node {node_id}")
            named[address] = f"node {node_id}"
    return named
