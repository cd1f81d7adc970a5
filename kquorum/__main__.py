"""`python -m kquorum` is the command `kquorum`."""

from kquorum.cli.entry import main

main()
