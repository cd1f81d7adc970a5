"""Who of the cluster can run a level of a feature (KIP-584, KIP-919), and a log whose levels this node cannot run."""

from collections.abc import Iterable, Iterator

from metadata.controller.context import DecisionContext
from metadata.controller.quorum.activation import LogUnsupported
from metadata.features import NOT_SUPPORTED, SUPPORTED_FEATURES, reason_not_supported
from metadata.image.cluster import SupportedFeature
from metadata.image.delta import MetadataDelta
from metadata.image.image import MetadataImage
from metadata.image.metadata_version import CONTROLLER_REGISTRATION

Range = tuple[int, int]


def reason_nobody_may(context: DecisionContext, name: str, level: int) -> str | None:
    """Why the cluster as a whole cannot run the level, in words: the first node that cannot, or whose say is missing.

    Fenced brokers count as well: they would find themselves barred when they come back.
    """
    for what, supported in _nodes(context, name):
        reason = reason_not_supported(what, level, supported)
        if reason is not None:
            return reason
    return _unregistered_controller(context)


def _nodes(context: DecisionContext, name: str) -> Iterator[tuple[str, Range]]:
    """This controller, the brokers, and from 3.7-IV0 on the other controllers, by id."""
    yield f"Local controller {context.node_id}", SUPPORTED_FEATURES.get(name, NOT_SUPPORTED)
    cluster = context.image.cluster
    for broker_id, broker in sorted(cluster.brokers.items()):
        yield f"Broker {broker_id}", _range(broker.features, name)
    if context.metadata_version >= CONTROLLER_REGISTRATION:
        for controller_id, controller in sorted(cluster.controllers.items()):
            if controller_id != context.node_id:
                yield f"Controller {controller_id}", _range(controller.features, name)


def _range(features: Iterable[SupportedFeature], name: str) -> Range:
    """A feature that is not mentioned is supported at 0 only."""
    for feature in features:
        if feature.name == name:
            return feature.min_supported_version, feature.max_supported_version
    return NOT_SUPPORTED


def _unregistered_controller(context: DecisionContext) -> str | None:
    if context.metadata_version < CONTROLLER_REGISTRATION:
        return None
    known = {*context.image.cluster.controllers, context.node_id}
    missing = next((each for each in sorted(context.voter_ids()) if each not in known), None)
    if missing is None:
        return None
    return f"controller {missing} has not registered, and may not support this feature"


def check_levels(image: MetadataImage, delta: MetadataDelta) -> None:
    """For what was committed: raises LogUnsupported for a level that this program cannot run, which is fatal.

    A controller that went on would misread, or fail to keep, what the level brings.
    """
    for name in sorted(delta.changed_features & set(image.features.finalized)):
        level = image.features.finalized[name]
        low, high = SUPPORTED_FEATURES.get(name, NOT_SUPPORTED)
        if not low <= level <= high:
            raise LogUnsupported(
                f"the metadata log finalizes {name} {level}, but this program runs levels {low} to {high} of it: run "
                "a version that knows the level. Nothing was written into the log"
            )
