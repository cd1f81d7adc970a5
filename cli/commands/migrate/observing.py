"""How the quorum is seen: by its leader's description, and by what each voter says of itself."""

import asyncio
from collections.abc import Mapping, Sequence

from kquorum.cli.clients.cluster_client import CLIENT_ID, ClusterClient
from kquorum.cli.clients.quorum_client import QuorumStatus, describe_quorum
from kquorum.cli.clients.security import security_for
from kquorum.cli.commands.migrate.advice import Levels, MigrationView, Program, VoterView
from kquorum.cli.failures import CliError, ExitStatus
from kquorum.network.connection import KafkaConnection
from kquorum.network.errors import NetworkError
from kquorum.node.config.addresses import HostPort, format_address
from kquorum.wire.errors import DecodeError
from kquorum.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kquorum.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from kquorum.wire.messages.error_codes import ErrorCode

_PATIENCE_MS = 2_000
_BROKER_RESOURCE = 4
# Only kquorum's nodes have configs of such names.
_OWN_PREFIX = "kquorum."


async def observe(addresses: Sequence[HostPort], timeout_ms: int) -> MigrationView:
    """Raises CliError where no leader answers in time, or it refuses."""
    async with ClusterClient(tuple(addresses), timeout_ms) as client:
        status = await describe_quorum(client)
    seen = await asyncio.gather(*(_see(status, voter.replica_id) for voter in status.voters))
    finalized = next((levels for voter, levels in seen if voter.is_leader), {})
    return MigrationView(
        leader_id=status.leader_id,
        leader_epoch=status.leader_epoch,
        high_watermark=status.high_watermark,
        voters=tuple(voter for voter, _ in seen),
        finalized=finalized,
    )


async def program_at(node_id: int, address: HostPort) -> Program:
    """What listens there. Raises CliError for a listener that refuses to say."""
    try:
        return (await _ask(node_id, address))[0]
    except (NetworkError, DecodeError):
        return Program.NONE


async def _see(status: QuorumStatus, node_id: int) -> tuple[VoterView, Mapping[str, int]]:
    voter, address = status.voter(node_id), status.place_of(node_id)
    assert voter is not None
    program, answer = Program.NONE, ApiVersionsResponse()
    if address is not None:
        try:
            program, answer = await _ask(node_id, address)
        except (NetworkError, DecodeError):
            program = Program.NONE
    supported: Levels = {
        each.name: (each.min_version, each.max_version) for each in answer.supported_features
    }
    view = VoterView(
        node_id=node_id,
        address="unknown address" if address is None else format_address(*address),
        program=program,
        is_leader=node_id == status.leader_id,
        # A leader of an old version reports no times.
        is_alive=voter.alive is not False,
        lag=voter.lag,
        supported=supported,
    )
    return view, {each.name: each.max_version_level for each in answer.finalized_features}


async def _ask(node_id: int, address: HostPort) -> tuple[Program, ApiVersionsResponse]:
    """Raises NetworkError or DecodeError, and CliError where the configs are not shown to us."""
    connection = await KafkaConnection.connect(
        *address, CLIENT_ID, _PATIENCE_MS, security=security_for(address)
    )
    try:
        versions = await connection.call(
            ApiVersionsRequest(client_software_name=CLIENT_ID, client_software_version="1"), _PATIENCE_MS
        )
        resource = DescribeConfigsResource(resource_type=_BROKER_RESOURCE, resource_name=str(node_id))
        configs = await connection.call(DescribeConfigsRequest(resources=(resource,)), _PATIENCE_MS)
    finally:
        connection.close()
    [result] = configs.results
    if result.error_code is not ErrorCode.none:
        raise CliError(
            f"controller {node_id} does not show its configs, by which its program is known: "
            f"{result.error_message or result.error_code.name} (DESCRIBE_CONFIGS on the cluster is needed)",
            status=ExitStatus.FAILED,
        )
    is_ours = any(each.name.startswith(_OWN_PREFIX) for each in result.configs)
    return Program.KQUORUM if is_ours else Program.KAFKA, versions
