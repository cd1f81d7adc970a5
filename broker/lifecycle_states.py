"""The states of a broker and the moves between them (Kafka's BrokerState); all other moves are bugs."""

from enum import Enum


class BrokerState(Enum):
    NOT_RUNNING = "not running"
    STARTING = "starting"
    RECOVERY = "recovery"
    RUNNING = "running"
    PENDING_CONTROLLED_SHUTDOWN = "pending controlled shutdown"
    SHUTTING_DOWN = "shutting down"


class LifecycleEvent(Enum):
    STARTED = "started"
    CAUGHT_UP = "caught up with the metadata log"
    UNFENCED = "unfenced"
    CONTROLLED_SHUTDOWN_ASKED = "controlled shutdown asked"
    SHUTDOWN_ASKED = "shutdown asked"


_State = BrokerState
_Event = LifecycleEvent

TRANSITIONS: dict[tuple[BrokerState, LifecycleEvent], BrokerState] = {
    (_State.NOT_RUNNING, _Event.STARTED): _State.STARTING,
    (_State.STARTING, _Event.CAUGHT_UP): _State.RECOVERY,
    (_State.RECOVERY, _Event.UNFENCED): _State.RUNNING,
    (_State.RUNNING, _Event.CONTROLLED_SHUTDOWN_ASKED): _State.PENDING_CONTROLLED_SHUTDOWN,
    # Asked again, the first wish stands; a broker that never ran leads nothing, so it asks no controller.
    (
        _State.PENDING_CONTROLLED_SHUTDOWN,
        _Event.CONTROLLED_SHUTDOWN_ASKED,
    ): _State.PENDING_CONTROLLED_SHUTDOWN,
    (_State.NOT_RUNNING, _Event.CONTROLLED_SHUTDOWN_ASKED): _State.SHUTTING_DOWN,
    (_State.STARTING, _Event.CONTROLLED_SHUTDOWN_ASKED): _State.SHUTTING_DOWN,
    (_State.RECOVERY, _Event.CONTROLLED_SHUTDOWN_ASKED): _State.SHUTTING_DOWN,
    (_State.SHUTTING_DOWN, _Event.CONTROLLED_SHUTDOWN_ASKED): _State.SHUTTING_DOWN,
    **{(state, _Event.SHUTDOWN_ASKED): _State.SHUTTING_DOWN for state in BrokerState},
}


def next_state(state: BrokerState, event: LifecycleEvent) -> BrokerState:
    target = TRANSITIONS.get((state, event))
    assert target is not None, f"a broker that is {state.value} cannot be told {event.value!r}"
    return target
