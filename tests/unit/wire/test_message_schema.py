"""A class of a message makes its functions when the first instance is made, and then acts as a dataclass does."""

from dataclasses import fields, replace
from threading import Barrier, Thread

import pytest

from kquorum.wire.message_schema import Data, Struct, kafka, message, struct


@struct
class Part(Struct):
    name: str = kafka("string", default="")
    secret: str = kafka("string", default="", is_secret=True)


@message(versions=(0, 1), flexible_since=None)
class Whole(Data):
    number: int = kafka("int32", default=-1)
    parts: tuple[Part, ...] = kafka([Part], default=())


@struct
class Empty(Struct):
    pass


def test_fields_that_are_not_given_have_their_defaults() -> None:
    assert (Whole().number, Whole().parts) == (-1, ())
    assert Whole(parts=(Part(name="a"),)).parts[0].name == "a"
    assert [item.name for item in fields(Whole)] == ["number", "parts"]  # type: ignore[arg-type]


def test_each_class_has_its_own_function_after_its_first_instance() -> None:
    @struct
    class Fresh(Struct):
        name: str = kafka("string", default="x")

    assert "__init__" not in vars(Fresh)
    Fresh()
    assert "__init__" in vars(Fresh)
    assert "__init__" not in vars(Struct) or Fresh.__init__ is not Struct.__init__


def test_an_unknown_field_and_a_positional_one_are_refused_from_the_first_instance_on() -> None:
    @struct
    class Fresh(Struct):
        name: str = kafka("string", default="x")

    for _ in range(2):
        with pytest.raises(TypeError, match="nome"):
            Fresh(nome="a")  # type: ignore[call-arg]
        with pytest.raises(TypeError, match="positional"):
            Fresh("a")  # type: ignore[misc]
    with pytest.raises(AttributeError):
        Fresh().nome = "a"  # type: ignore[attr-defined]


def test_equal_means_the_same_class_and_the_same_fields() -> None:
    assert Part(name="a") == Part(name="a")
    assert Part(name="a") != Part(name="b")
    assert Whole(parts=(Part(),)) == Whole(parts=(Part(),))
    assert Empty() == Empty()
    assert Empty() != Part()
    assert Part() != Whole()
    assert replace(Part(name="a"), name="b") == Part(name="b")
    with pytest.raises(TypeError, match="unhashable"):
        hash(Part())


def test_what_is_shown_leaves_secrets_out() -> None:
    shown = repr(Whole(number=3, parts=(Part(name="a", secret="hidden"),)))
    assert shown == "Whole(number=3, parts=(Part(name='a'),))"


def test_two_threads_may_make_the_first_instance() -> None:
    @struct
    class Fresh(Struct):
        name: str = kafka("string", default="x")

    made: list[Fresh] = []
    both = Barrier(2)

    def make() -> None:
        both.wait()
        made.append(Fresh(name="y"))

    threads = [Thread(target=make) for _ in range(2)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert made == [Fresh(name="y")] * 2
