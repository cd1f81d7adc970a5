"""The hash of an image: equal on all nodes at equal offsets, however each of them got there.

It is a sum modulo 2**128 over everything in the image (each broker, topic, partition, config, ...), of a hash of that
thing alone. So the order does not matter, and a change costs as much as it changes: the hash of the old value is
subtracted, that of the new value added. The sum finds bugs, flipped bits and software that disagrees; as a sum of
hashes it does not protect against states that are forged on purpose.

Two versions of this program that hash the same image differently would accuse each other, so `SCHEME` goes with each
hash that is sent, and only hashes of one scheme are compared. Raise it whenever an image gets a field.
"""

import struct
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import cache, lru_cache
from hashlib import blake2b
from operator import attrgetter
from typing import Any, Final, TypeVar
from uuid import UUID

import numpy as np

from kquorum.metadata.image.delta import MetadataDelta
from kquorum.metadata.image.features import FeaturesImage
from kquorum.metadata.image.image import MetadataImage
from kquorum.metadata.image.partitions import Column, PartitionTable
from kquorum.metadata.image.quotas import ProducerIdsImage
from kquorum.metadata.image.topics import TopicImage, TopicsImage
from kquorum.metadata.state_hash.partition_hash import Rows, hash_of_rows, seed_of

Hash = Callable[..., int]


# The number of rows that are hashed without a pause; each topic counts as several rows.
_ROWS_AT_ONCE: Final = 1 << 14
_ROWS_OF_A_TOPIC: Final = 100

# Whether it is added (1) or taken off (-1), the hash of what stands beside the rows, and the rows.
_Work = tuple[int, int, Rows]


def hash_of_topics(topics: TopicsImage, hash_of: Hash) -> int:
    """`hash_of` is what makes a hash of a topic's name and id, and of what is rare in a partition."""
    return sum(_sums(_whole(topic, 1, hash_of) for topic in topics.by_id.values()))


def hashes_of_topics_change(
    delta: MetadataDelta, old: TopicsImage, new: TopicsImage, hash_of: Hash
) -> Iterator[int]:
    """What `delta` adds to the hash, below zero where it takes off, in parts of some milliseconds of work."""
    return _sums(_changed(delta, old, new, hash_of))


def _changed(delta: MetadataDelta, old: TopicsImage, new: TopicsImage, hash_of: Hash) -> Iterator[_Work]:
    for topic_id in delta.created_topic_ids:
        yield _whole(new.by_id[topic_id], 1, hash_of)
    for topic_id in delta.deleted_topic_ids:
        yield _whole(old.by_id[topic_id], -1, hash_of)
    for topic_id, ids in delta.topics.settled_ids():
        if not len(ids) or topic_id in delta.created_topic_ids:
            continue
        seed = seed_of(topic_id)
        was, is_now = old.by_id[topic_id].partitions, new.by_id[topic_id].partitions
        rare_then = rare_now = 0
        if is_now.rare_lists or was.rare_lists:
            known = ids.tolist()
            rare_then = _rare(topic_id, was, hash_of, known)
            rare_now = _rare(topic_id, is_now, hash_of, known)
        places = _places(is_now, ids)
        yield 1, rare_now, Rows(seed, is_now, places)
        # Partitions only ever come, so that as many are the same.
        yield -1, rare_then, Rows(seed, was, places if len(was) == len(is_now) else _places(was, ids))


def _whole(topic: TopicImage, sign: int, hash_of: Hash) -> _Work:
    beside = hash_of("topic", topic.id, topic.name)
    beside += _rare(topic.id, topic.partitions, hash_of, topic.partitions.rare_lists)
    return sign, beside, Rows(seed_of(topic.id), topic.partitions, None)


def _sums(work: Iterable[_Work]) -> Iterator[int]:
    total = count = 0
    rows_by_sign: dict[int, list[Rows]] = {1: [], -1: []}
    for sign, beside, rows in work:
        total += sign * beside
        for piece in rows.pieces(_ROWS_AT_ONCE):
            rows_by_sign[sign].append(piece)
            count += piece.count + _ROWS_OF_A_TOPIC
            if count >= _ROWS_AT_ONCE:
                yield total + hash_of_rows(rows_by_sign[1]) - hash_of_rows(rows_by_sign[-1])
                total = count = 0
                rows_by_sign = {1: [], -1: []}
    yield total + hash_of_rows(rows_by_sign[1]) - hash_of_rows(rows_by_sign[-1])


def _rare(topic_id: UUID, table: PartitionTable, hash_of: Hash, ids: Collection[int]) -> int:
    """Of what hardly any partition has, beside its row."""
    lists = table.rare_lists
    if not lists:
        return 0
    return sum(hash_of("rare", topic_id, each, lists[each]) for each in ids if each in lists)


def _places(table: PartitionTable, ids: Column) -> Column:
    """Where in the table those of the partitions stand that are in it."""
    known = table.ids
    if not len(known):
        return known[:0]
    if known[0] == 0 and known[-1] == len(known) - 1:
        return ids if ids[-1] < len(known) else ids[ids < len(known)]
    places = np.minimum(known.searchsorted(ids), len(known) - 1)
    found: Column = places[known[places] == ids]
    return found


SCHEME: Final = 1
MODULUS: Final = 1 << 128
_DIGEST_SIZE: Final = 16
# What is hashed without a pause: as many things without contents, of some ten microseconds each.
_THINGS_AT_ONCE: Final = 500
# The values, and the bytes of values, that take as long as one of these things.
_VALUES_OF_A_THING: Final = 8
_BYTES_OF_A_THING: Final = 8_192
_K = TypeVar("_K")
_V = TypeVar("_V")


def hash_of_image(image: MetadataImage) -> int:
    """The hash from scratch: a second for a million partitions. Provenance is no part of it."""
    total = _features(image.features) + _producer_ids(image.producer_ids)
    total += sum(_hash("broker", each) for each in image.cluster.brokers.values())
    total += sum(_hash("controller", each) for each in image.cluster.controllers.values())
    total += sum(_map_entry("config", *item) for item in image.configs.resources.items())
    total += sum(_map_entry("quota", *item) for item in image.client_quotas.entities.items())
    total += sum(_entry("acl", *item) for item in image.security.acls.items())
    total += sum(_entry("scram", *item) for item in image.security.scram.items())
    total += sum(_entry("token", *item) for item in image.security.delegation_tokens.items())
    return (total + hash_of_topics(image.topics, _hash)) % MODULUS


def hash_after(before: int, delta: MetadataDelta, after: MetadataImage) -> int:
    """The hash of `after`, to which `delta` led from an image with the hash `before`: the same as from scratch, for
    the cost of what changed. Not for a delta that was made to `become` another image."""
    return (before + sum(hashes_of_change(delta, after))) % MODULUS


def hashes_of_change(delta: MetadataDelta, after: MetadataImage) -> Iterator[int]:
    """What the delta adds to the hash, in parts of some milliseconds of work; a part may be below zero."""
    old, new = delta.image, after
    if new.features is not old.features:
        yield _features(new.features) - _features(old.features)
    if new.producer_ids is not old.producer_ids:
        yield _producer_ids(new.producer_ids) - _producer_ids(old.producer_ids)
    if new.cluster is not old.cluster:
        brokers, controllers = delta.changed_brokers.keys(), delta.changed_controllers.keys()
        yield from _changes("broker", brokers, old.cluster.brokers, new.cluster.brokers, _value)
        yield from _changes(
            "controller", controllers, old.cluster.controllers, new.cluster.controllers, _value
        )
    if new.configs is not old.configs:
        resources = (old.configs.resources, new.configs.resources)
        yield from _changes("config", delta.changed_configs, *resources, _map_entry, _cost_of_configs)
    if new.client_quotas is not old.client_quotas:
        entities = (old.client_quotas.entities, new.client_quotas.entities)
        yield from _changes("quota", delta.client_quotas.changed, *entities, _quota_entry)
    if new.topics is not old.topics:
        yield from hashes_of_topics_change(delta, old.topics, new.topics, _hash)
    yield from _security_changes(delta, new)


def state_hash_text(state_hash: int) -> str:
    """As it is shown: 32 hexadecimal digits."""
    return f"{state_hash:032x}"


def _features(features: FeaturesImage) -> int:
    migration = features.zk_migration_state
    return sum(_hash("feature", *item) for item in features.finalized.items()) + (
        0 if migration is None else _hash("migration", migration)
    )


def _producer_ids(producer_ids: ProducerIdsImage) -> int:
    return 0 if producer_ids.is_empty else _hash("producer ids", producer_ids.next_producer_id)


def _security_changes(delta: MetadataDelta, after: MetadataImage) -> Iterator[int]:
    old, new = delta.image.security, after.security
    if new is old:
        return
    change = delta.security
    yield from _changes("acl", change.changed_acls, old.acls, new.acls, _entry)
    yield from _changes("scram", change.changed_scram, old.scram, new.scram, _entry)
    tokens = (old.delegation_tokens, new.delegation_tokens)
    yield from _changes("token", change.changed_tokens, *tokens, _entry)


def _changes(
    kind: str,
    keys: Collection[_K],
    old: Mapping[_K, _V],
    new: Mapping[_K, _V],
    hash_of: Callable[[str, _K, _V], int],
    cost_of: Callable[[_V], int] = lambda _value: 0,
) -> Iterator[int]:
    """`cost_of`: what a value's contents cost beside the value itself, in things."""
    total = cost = 0
    for key in keys:
        was, is_now = old.get(key), new.get(key)
        cost += 1
        if was is not is_now:
            for value, sign in ((was, -1), (is_now, 1)):
                if value is not None:
                    total += sign * hash_of(kind, key, value)
                    cost += cost_of(value)
        if cost >= _THINGS_AT_ONCE:
            yield total
            total = cost = 0
    yield total


def _entry(kind: str, key: object, value: object) -> int:
    return _hash(kind, key, value)


def _value(kind: str, _: object, value: object) -> int:
    """Of what holds its own key."""
    return _hash(kind, value)


def _map_entry(kind: str, key: object, values: Mapping[Any, object]) -> int:
    return _hash(kind, key, tuple(sorted(values.items())))


# The hashes of quotas that came last, by key: a later change takes the same hash off again. An entity has a few
# numbers, so nothing large is kept, as it would be with configs.
_KNOWN_QUOTAS: Final[dict[object, tuple[object, int]]] = {}
_MOST_KNOWN: Final = 4096


def _quota_entry(kind: str, key: object, values: Mapping[Any, object]) -> int:
    known = _KNOWN_QUOTAS.get(key)
    if known is not None and known[0] is values:
        return known[1]
    made = _map_entry(kind, key, values)
    if len(_KNOWN_QUOTAS) >= _MOST_KNOWN:
        _KNOWN_QUOTAS.clear()
    _KNOWN_QUOTAS[key] = values, made
    return made


_EMPTY_HASH: Final = blake2b(digest_size=_DIGEST_SIZE, person=b"kquorum state")


def _cost_of_configs(configs: Mapping[str, str]) -> int:
    return len(configs) // _VALUES_OF_A_THING + sum(map(len, configs.values())) // _BYTES_OF_A_THING


def _hash(*parts: object) -> int:
    out: list[bytes] = []
    _append_canonical(out, parts)
    digest = _EMPTY_HASH.copy()
    digest.update(b"".join(out))
    return int.from_bytes(digest.digest(), "big")


def _append_canonical(out: list[bytes], value: object) -> None:
    """Append bytes that differ when values differ, on every machine and Python alike: the type, and where its end
    is."""
    if isinstance(value, str):
        out.append(_text(value))
    elif isinstance(value, tuple):
        out.append(b"(")
        for item in value:
            _append_canonical(out, item)
        out.append(b")")
    elif value is None or isinstance(value, bool):
        out.append({None: b"n", True: b"t", False: b"f"}[value])
    elif isinstance(value, int):
        out.append(b"i%d;" % value)
    elif isinstance(value, float):
        out.append(_FLOAT.pack(b"d", value))
    elif isinstance(value, bytes):
        out.append(b"b%d:" % len(value) + value)
    elif isinstance(value, UUID):
        out.append(b"u" + value.bytes)
    else:
        values_of: Any = _values_of
        _append_canonical(out, values_of(type(value))(value))


_FLOAT: Final = struct.Struct(">cd")


@lru_cache(maxsize=4096)
def _text(value: str) -> bytes:
    data = value.encode("utf-8", "surrogatepass")
    return b"s%d:" % len(data) + data


@cache
def _values_of(cls: Any) -> Callable[[object], tuple[object, ...]]:
    """A function for the values of all fields of a dataclass (of two or more)."""
    assert is_dataclass(cls), f"a {cls.__name__} cannot stand in an image"
    return attrgetter(*(field.name for field in fields(cls)))
