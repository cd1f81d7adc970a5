"""`python -m kquorum.cli.child ...` is `kquorum ...` as a child process: it ends when its parent ends or is killed."""

from kquorum.cli.entry import main
from kquorum.node.parent_process import die_with_parent

if __name__ == "__main__":
    die_with_parent()
    main()
