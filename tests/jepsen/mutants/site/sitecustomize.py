"""Python runs this before a node begins, when this folder is on its path: that is how a bug gets in from outside."""

import os

if name := os.environ.get("JEPSEN_MUTANT"):
    from tests.jepsen.mutants.planting import plant

    plant(name)
