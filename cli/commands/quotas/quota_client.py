"""Client quotas as a client of a broker sees and changes them (KIP-546)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from kquorum.cli.clients.cluster_client import ClusterClient, PendingRequest, check_change, check_error
from kquorum.wire.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    OpData,
    RequestEntityData,
    RequestEntryData,
)
from kquorum.wire.messages.describe_client_quotas import ComponentData, DescribeClientQuotasRequest

_EXACT, _DEFAULT = 0, 1
DEFAULT_NAME: Final = "<default>"
"""How the entity without a name is shown: it is for all that have no quota of their own."""

# Type (`user`, `client-id`, `ip`) -> name; None is the default.
Entity = Mapping[str, str | None]


@dataclass(frozen=True, slots=True)
class Quotas:
    """What is set for one entity, by Kafka's key."""

    entity: Entity
    values: Mapping[str, float]


def words_of(entity: Entity) -> str:
    """`user alice, client-id <default>`."""
    return ", ".join(f"{kind} {DEFAULT_NAME if name is None else name}" for kind, name in entity.items())


async def find_quotas(client: ClusterClient, entity: Entity, *, strict: bool = False) -> tuple[Quotas, ...]:
    """Of all entities that have these parts; with `strict` no others. Raises CliError for a refusal."""
    components = tuple(
        ComponentData(entity_type=kind, match_type=_DEFAULT if name is None else _EXACT, match=name)
        for kind, name in entity.items()
    )
    answer = await client.ask(DescribeClientQuotasRequest(components=components, strict=strict))
    check_error(int(answer.error_code), answer.error_message, "the quotas cannot be listed")
    return tuple(
        Quotas(
            {each.entity_type: each.entity_name for each in entry.entity},
            {each.key: each.value for each in entry.values},
        )
        for entry in answer.entries or ()
    )


async def alter_quotas(
    client: ClusterClient,
    entity: Entity,
    values: Mapping[str, float],
    removed: Sequence[str],
    *,
    dry_run: bool,
) -> None:
    """All of it or nothing. Raises CliError for a refusal."""
    entry = RequestEntryData(
        entity=tuple(RequestEntityData(entity_type=kind, entity_name=name) for kind, name in entity.items()),
        ops=(
            *(OpData(key=key, value=value) for key, value in values.items()),
            *(OpData(key=key, remove=True) for key in removed),
        ),
    )
    doubt = "they may have been altered all the same: look with `kquorum quotas list`"
    request = AlterClientQuotasRequest(entries=(entry,), validate_only=dry_run)
    [result] = (await client.ask(PendingRequest(request=request, doubt=None if dry_run else doubt))).entries
    kind = "would not be altered" if dry_run else "were not altered"
    check_change(int(result.error_code), result.error_message, f"quotas of {words_of(entity)} {kind}", doubt)
