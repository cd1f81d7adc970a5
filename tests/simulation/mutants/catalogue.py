"""All mutants, by name; importing this fills the register."""

from tests.simulation.mutants import (
    durability,
    elections,
    failing_disks,
    leadership,
    membership,
    reads,
    replication,
    snapshots,
)
from tests.simulation.mutants.registry import MUTANTS, Mutant

GROUPS = (durability, elections, replication, leadership, reads, membership, snapshots, failing_disks)

__all__ = ["GROUPS", "MUTANTS", "Mutant"]
