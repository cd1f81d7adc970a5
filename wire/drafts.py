"""A fast way to build values of frozen, slotted dataclasses."""

from typing import Any


def draft_of(cls: type[Any]) -> Any:
    """A class of the same memory layout as the frozen `cls`, whose fields can be assigned.

    A frozen dataclass's `__init__` pays for each guarded assignment. A decoder assigns plainly to a draft
    instead and then sets its `__class__` to the real class: the layouts are equal, so Python allows it, and
    the value is frozen from then on. Measured on a class of seven fields: 0.27 against 1.85 microseconds.
    """
    # Each of these would else come from a frozen base class: as long as one of the first two does, every assignment
    # is a call, fifteen times slower; and the base's __init__ would fill in its defaults for nothing.
    namespace = {
        "__slots__": cls.__dict__["__slots__"],
        "__setattr__": object.__setattr__,
        "__delattr__": object.__delattr__,
        "__init__": object.__init__,
    }
    return type(f"Draft{cls.__name__}", cls.__bases__, namespace)
