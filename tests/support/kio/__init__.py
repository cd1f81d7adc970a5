"""kio's classes, one for each version of each message: the reference that `wire.messages` is tested against, and how
the tests' clients write requests and read answers independently of it.

Read `classes.py` first; `codec.py` reads and writes the entities, `entities.py` makes them of plain values,
`frames.py` puts the headers before them.
"""
