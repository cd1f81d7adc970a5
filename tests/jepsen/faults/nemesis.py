"""The worker of process `nemesis`: begins faults, heals them, and says what it did."""

from collections.abc import Iterable
from typing import Any

from tests.jepsen.checkers.availability import FAULT_KEY, HEAL
from tests.jepsen.core.history import Op, OpType
from tests.jepsen.faults.fault import Fault, NotNow, Scene
from tests.jepsen.faults.quorum_view import NoLeader


class Nemesis:
    """An operation is a fault's name, or HEAL with the fault in its value (with none: all of them).

    Every operation ends as info: its value says what was done, its error why a fault could not be brought about
    (then it is none) or what went wrong in healing.
    """

    def __init__(self, scene: Scene, faults: Iterable[Fault]) -> None:
        self._scene = scene
        self._faults = {fault.name: fault for fault in faults}
        self._begun: list[str] = []

    def open(self) -> None:
        self._scene.network.enter_as_client()

    def invoke(self, op: Op) -> Op:
        if op.f == HEAL:
            return self._heal(op)
        assert op.f not in self._begun, f"{op.f} goes on already"
        try:
            value = dict(self._faults[op.f].begin(self._scene))
        except (NotNow, NoLeader) as error:
            self._scene.release(op.f)
            return op.ended(OpType.INFO, None, str(error))
        except Exception:
            # It may have done half of its work; the heal knows.
            self._begun.append(op.f)
            raise
        self._begun.append(op.f)
        return op.ended(OpType.INFO, value)

    def close(self) -> None:
        """The cluster and its network are taken away by those who made them."""

    def _heal(self, op: Op) -> Op:
        """Tells who led just before; healing itself never fails for want of a leader."""
        wanted = (op.value or {}).get(FAULT_KEY)
        value: dict[str, Any] = {FAULT_KEY: wanted} if wanted else {}
        value |= self._who_leads()
        problems = []
        for name in [wanted] if wanted else list(reversed(self._begun)):
            try:
                value |= self._end(name) or {}
            except Exception as error:  # noqa: BLE001 - the other faults are healed all the same
                problems.append(f"{name}: {type(error).__name__}: {error}")
        return op.ended(OpType.INFO, value, "; ".join(problems) or None)

    def _end(self, name: str) -> dict[str, Any] | None:
        if name not in self._begun:
            return None
        self._begun.remove(name)
        try:
            found = self._faults[name].end(self._scene)
        finally:
            self._scene.release(name)
        return None if found is None else dict(found)

    def _who_leads(self) -> dict[str, Any]:
        try:
            return self._scene.quorum.leader().as_value()
        except NoLeader:
            return {"leader": None}
