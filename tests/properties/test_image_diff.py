"""The difference of two images under random histories: nothing exactly when they are equal, and the same both ways."""

from collections import Counter
from uuid import UUID

from hypothesis import example, given, settings

from kquorum.metadata.image.diff import Action, StateChange, StateKind, diff_images
from kquorum.metadata.image.image import MetadataImage, Provenance
from kquorum.wire.metadata_records.topics import RemoveTopicRecord, TopicRecord
from kquorum.wire.record_frame import encode_record
from kquorum.wire.schema import MetadataRecord
from tests.support.image_records import image_from_values, image_records
from tests.support.metadata.image_histories import HISTORIES, accepted

_MIRRORED = {
    Action.ADDED: Action.REMOVED,
    Action.REMOVED: Action.ADDED,
    Action.CHANGED: Action.CHANGED,
}


def histories(first: list[MetadataRecord], more: list[MetadataRecord]) -> tuple[MetadataImage, MetadataImage]:
    before = image_after(MetadataImage.empty(), first)
    return before, image_after(before, more)


def image_after(image: MetadataImage, history: list[MetadataRecord]) -> MetadataImage:
    return accepted(image, history)[0].apply(Provenance(last_contained_offset=7))


def _earlier_subject(change: StateChange) -> str:
    """A topic of the same id under another name is shown by its later one."""
    return next((str(field.before) for field in change.fields if field.name == "name"), change.subject)


def counted(changes: list[StateChange], *, mirrored: bool = False) -> Counter[tuple[StateKind, Action, str]]:
    return Counter(
        (change.kind, _MIRRORED[change.action], _earlier_subject(change))
        if mirrored
        else (change.kind, change.action, change.subject)
        for change in changes
        if change.kind is not StateKind.PARTITION
    )


@given(HISTORIES, HISTORIES)
@settings(deadline=None)
def test_no_difference_means_equal_and_the_other_way_round(
    first: list[MetadataRecord], more: list[MetadataRecord]
) -> None:
    before, after = histories(first, more)
    changes = list(diff_images(before, after))
    assert (not changes) == (before == after)
    assert all(change.fields for change in changes)


@given(HISTORIES, HISTORIES)
@example(
    [TopicRecord(name="b", topic_id=UUID(int=3))],
    [RemoveTopicRecord(topic_id=UUID(int=3)), TopicRecord(name="a", topic_id=UUID(int=3))],
)
@settings(deadline=None)
def test_the_difference_backwards_is_its_mirror(
    first: list[MetadataRecord], more: list[MetadataRecord]
) -> None:
    before, after = histories(first, more)
    there, back = list(diff_images(before, after)), list(diff_images(after, before))
    assert counted(there) == counted(back, mirrored=True)


@given(HISTORIES)
@settings(deadline=None)
def test_a_snapshot_differs_in_nothing_from_what_it_was_taken_of(history: list[MetadataRecord]) -> None:
    image = image_after(MetadataImage.empty(), history)
    loaded = image_from_values(map(encode_record, image_records(image)), image.provenance)
    assert list(diff_images(image, loaded)) == []
