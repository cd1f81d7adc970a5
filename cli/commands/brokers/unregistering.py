"""The removal of a broker's registration (KIP-500: UnregisterBroker)."""

from kquorum.cli.clients.cluster_client import ClusterClient, PendingRequest, check_change
from kquorum.cli.commands.brokers.members import describe_cluster
from kquorum.cli.failures import CliError
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.messages.unregister_broker import UnregisterBrokerRequest


async def unregister_broker(client: ClusterClient, broker_id: int, *, dry_run: bool) -> bool:
    """Whether it was registered. Raises CliError for a broker that is not fenced, and for a refusal."""
    cluster = await describe_cluster(client)
    broker = next((each for each in cluster.brokers if each.broker_id == broker_id), None)
    if broker is not None and not broker.is_fenced:
        raise CliError(
            f"broker {broker_id} is not fenced, and would register again: stop it for good first, and wait until "
            "`kquorum brokers` shows it as fenced"
        )
    if dry_run:
        return broker is not None
    doubt = "it may have been unregistered all the same: look with `kquorum brokers`"
    request = UnregisterBrokerRequest(broker_id=broker_id)
    answer = await client.ask(PendingRequest(request=request, doubt=doubt))
    if answer.error_code is ErrorCode.broker_id_not_registered:
        return client.was_in_doubt
    check_change(
        int(answer.error_code), answer.error_message, f"broker {broker_id} was not unregistered", doubt
    )
    return True
