"""All mutants, by name; importing this fills the register."""

from tests.simulation.mutants import durability, elections, leadership, membership, reads, replication
from tests.simulation.mutants.registry import MUTANTS, Mutant

GROUPS = (durability, elections, replication, leadership, reads, membership)

__all__ = ["GROUPS", "MUTANTS", "Mutant"]
