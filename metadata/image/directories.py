"""Directory ids (KIP-858): where on a broker a replica lives, and the ids that stand for "not known"."""

from collections.abc import Collection
from uuid import UUID

MIGRATING = UUID(int=0)
UNASSIGNED = UUID(int=1)
LOST = UUID(int=2)
RESERVED_DIRECTORY_COUNT = 100


def is_reserved(directory_id: UUID) -> bool:
    """The first hundred ids never name a real directory."""
    return directory_id.int < RESERVED_DIRECTORY_COUNT


def is_online(directory_id: UUID, online_directories: Collection[UUID]) -> bool:
    """Whether a replica in this directory can be served by a broker with these online directories.

    A broker that registered no directories (metadata.version below 3.7-IV2) has all of them online.
    """
    if directory_id in (UNASSIGNED, MIGRATING):
        return True
    if directory_id == LOST:
        return False
    return not online_directories or directory_id in online_directories
