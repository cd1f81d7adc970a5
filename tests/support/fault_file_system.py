"""A disk in memory behind the storage's port, which keeps its word about flushes and about nothing else.

The model is no kinder than POSIX. Content is sure once its file was flushed, names once their folder was. Of what came
after, a power cut leaves what it likes: some sectors and not others (where the file was shorter before, these read as
zeros), a file that ends anywhere between its lengths, names changed or not and in any order; only a rename is whole or
not at all. After a flush that failed, what it should have kept is still read, but never becomes durable, as the kernel
takes its pages for written (Rebello et al., USENIX ATC '20).
"""

import errno
import os
from collections.abc import Callable
from pathlib import Path
from random import Random

from kquorum.storage.file_system import Content, FileStatus
from tests.support.fault_disk_parts import ROOT, Folder, Inode, OpenFile

SYNCS = frozenset({"fsync", "fdatasync"})
# The calls after which a power cut may leave something else than before.
CHANGES = SYNCS | {
    "open",
    "write",
    "pwrite",
    "truncate",
    "allocate",
    "rename",
    "unlink",
    "make_folder",
    "remove_folder",
}
# No test of the storage depends on the hour: every write is of this moment.
_WRITTEN_MS = 1_700_000_000_000
_FIRST_DESCRIPTOR = 1000


def refused(number: int, path: object = None) -> OSError:
    return OSError(number, os.strerror(number), None if path is None else str(path))


class FaultFileSystem:
    """Satisfies storage.file_system.FileSystem.

    `on_call` hears of every call before it is made, by its number from 1 and its name, and may raise an OSError in its
    place. `capacity` is in bytes of content: what does not fit is refused with ENOSPC; names need no space.
    """

    def __init__(self, *folders: Path, capacity: int = 1 << 40) -> None:
        """The folders, and those they are in, are there and durable."""
        self.capacity = capacity
        self.calls = 0
        self.on_call: Callable[[int, str], None] = lambda _count, _name: None
        self.folders: dict[Path, Folder] = {Path("/"): Folder()}
        # Every folder that there ever was: a power cut may bring back its name.
        self._by_number: dict[int, Folder] = {ROOT: self.folders[Path("/")]}
        self._modified_ms: dict[int, int] = {}
        self.inodes: dict[int, Inode] = {}
        self._descriptors: dict[int, OpenFile] = {}
        self._next_inode = 1
        self._next_descriptor = _FIRST_DESCRIPTOR
        for folder in folders:
            self.make_folder(folder)
        for each in self.folders.values():
            each.sync()
        self.calls = 0

    # The port

    def open(self, path: Path, flags: int, mode: int = 0o644) -> int:
        self._call("open")
        if path in self.folders:
            if flags & os.O_ACCMODE != os.O_RDONLY:
                raise refused(errno.EISDIR, path)
            return self._opened(OpenFile(flags, folder=path))
        if flags & os.O_DIRECTORY:
            raise refused(errno.ENOENT, path)
        entries = self._folder_of(path).entries
        if path.name in entries:
            if flags & os.O_EXCL:
                raise refused(errno.EEXIST, path)
        elif not flags & os.O_CREAT:
            raise refused(errno.ENOENT, path)
        else:
            self._folder_of(path).change((path.name, self._new_inode()))
        inode = self.inodes[entries[path.name]]
        if flags & os.O_TRUNC:
            inode.truncate(0)
        return self._opened(OpenFile(flags, inode=inode))

    def open_for_long(self, path: Path, flags: int, mode: int = 0o644) -> int:
        return self.open(path, flags, mode)

    def close(self, descriptor: int) -> None:
        self._call("close")
        self._file(descriptor)
        del self._descriptors[descriptor]
        self._forget_unused()

    def write(self, descriptor: int, data: bytes | bytearray | memoryview) -> int:
        self._call("write")
        file = self._file(descriptor)
        position = file.content.size if file.flags & os.O_APPEND else file.position
        written = self._write(file, data, position)
        file.position = position + written
        return written

    def pwrite(self, descriptor: int, data: bytes | memoryview, position: int) -> int:
        self._call("pwrite")
        file = self._file(descriptor)
        assert not file.flags & os.O_APPEND, "Linux appends then, whatever position is given"
        return self._write(file, data, position)

    def _write(self, file: OpenFile, data: bytes | bytearray | memoryview, position: int) -> int:
        if file.flags & os.O_ACCMODE == os.O_RDONLY:
            raise refused(errno.EBADF)
        inode = file.content
        fitting = inode.taken + max(0, self._free_bytes()) - position
        if fitting <= 0 and len(data) > 0:
            raise refused(errno.ENOSPC)
        taken = bytes(data[:fitting])
        inode.write(position, taken)
        return len(taken)

    def pread(self, descriptor: int, size: int, position: int) -> bytes:
        self._call("pread")
        return bytes(self._file(descriptor).content.data[position : position + size])

    def size(self, descriptor: int) -> int:
        self._call("size")
        return self._file(descriptor).content.size

    def truncate(self, descriptor: int, size: int) -> None:
        self._call("truncate")
        self._file(descriptor).content.truncate(size)

    def allocate(self, descriptor: int, size: int) -> None:
        self._call("allocate")
        inode = self._file(descriptor).content
        if size - inode.taken > self._free_bytes():
            raise refused(errno.ENOSPC)
        inode.allocate(size)

    def fsync(self, descriptor: int) -> None:
        self._sync("fsync", descriptor)

    def fdatasync(self, descriptor: int) -> None:
        self._sync("fdatasync", descriptor)

    def _sync(self, name: str, descriptor: int) -> None:
        file = self._file(descriptor)
        synced = self.folders[file.folder] if file.folder is not None else file.content
        try:
            self._call(name)
        except OSError:
            synced.forget_changes()
            raise
        synced.sync()

    def rename(self, path: Path, target: Path) -> None:
        self._call("rename")
        assert path.parent == target.parent, "the storage renames within a folder"
        folder = self._folder_of(path)
        if path.name not in folder.entries:
            raise refused(errno.ENOENT, path)
        if path != target:
            if path in self.folders:
                assert target.name not in folder.entries, "the storage gives a folder a new name"
            folder.change((target.name, folder.entries[path.name]), (path.name, None))
            for each in [each for each in self.folders if each == path or path in each.parents]:
                self.folders[target / each.relative_to(path)] = self.folders.pop(each)
        self._forget_unused()

    def remove_folder(self, path: Path) -> None:
        self._call("remove_folder")
        if path not in self.folders:
            raise refused(errno.ENOENT, path)
        if self.folders[path].entries:
            raise refused(errno.ENOTEMPTY, path)
        self._folder_of(path).change((path.name, None))
        del self.folders[path]

    def unlink(self, path: Path) -> None:
        self._call("unlink")
        folder = self._folder_of(path)
        if path.name not in folder.entries:
            raise refused(errno.ENOENT, path)
        if folder.entries[path.name] < 0:
            raise refused(errno.EISDIR, path)
        folder.change((path.name, None))
        self._forget_unused()

    def make_folder(self, path: Path) -> None:
        self._call("make_folder")
        for folder in (*reversed(path.parents), path):
            if folder not in self.folders:
                number = ROOT - len(self._by_number)
                self._folder_of(folder).change((folder.name, number))
                self.folders[folder] = self._by_number[number] = Folder()

    def names(self, folder: Path) -> list[str]:
        self._call("names")
        if folder not in self.folders:
            raise refused(errno.ENOENT, folder)
        return sorted(self.folders[folder].entries)

    def exists(self, path: Path) -> bool:
        folder = self.folders.get(path.parent, Folder())
        return path in self.folders or path.name in folder.entries

    def status(self, path: Path) -> FileStatus:
        self._call("status")
        number = self._number(path)
        return FileStatus(self.inodes[number].size, self._modified_ms.get(number, _WRITTEN_MS))

    def set_modified(self, path: Path, modified_ms: int) -> None:
        self._call("set_modified")
        self._modified_ms[self._number(path)] = modified_ms

    def is_folder(self, path: Path) -> bool:
        return path in self.folders

    def read(self, path: Path) -> bytes:
        self._call("read")
        return bytes(self.inode(path).data)

    def map(self, path: Path) -> Content:
        self._call("map")
        return bytes(self.inode(path).data)

    def free_bytes(self, folder: Path) -> int:
        self._call("free_bytes")
        if folder not in self.folders:
            raise refused(errno.ENOENT, folder)
        return max(0, self._free_bytes())

    # What the port does not have

    def inode(self, path: Path) -> Inode:
        return self.inodes[self._number(path)]

    def _number(self, path: Path) -> int:
        entries = self._folder_of(path).entries
        if path.name not in entries:
            raise refused(errno.ENOENT, path)
        if entries[path.name] < 0:
            raise refused(errno.EISDIR, path)
        return entries[path.name]

    def put(self, path: Path, content: bytes) -> None:
        """Have this durable in a file; of a test that sets the scene, or of a disk that changes what it was given."""
        folder = self._folder_of(path)
        if path.name not in folder.entries:
            folder.entries[path.name] = folder.durable[path.name] = self._new_inode()
        self.inode(path).replace(content)

    def flip(self, path: Path, position: int, mask: int = 0x10) -> None:
        """Flip bits of a file, on the disk and for every reader."""
        content = bytearray(self.inode(path).data)
        content[position] ^= mask
        self.put(path, bytes(content))

    def power_cut(self, random_source: Random) -> "FaultFileSystem":
        """A disk with what this one may hold if the power goes now: another one, while this one goes on."""
        left = FaultFileSystem(capacity=self.capacity)
        left._next_inode = self._next_inode
        left._modified_ms = dict(self._modified_ms)
        left.folders.clear()
        contents: dict[int, Inode] = {}
        waiting = [(Path("/"), ROOT)]
        while waiting:
            path, number = waiting.pop(0)
            found = self._by_number[number].after_power_cut(random_source)
            left.folders[path] = left._by_number[number] = found
            for inode in sorted({each for each in found.entries.values() if each > 0} - contents.keys()):
                contents[inode] = self.inodes[inode].after_power_cut(random_source)
            waiting += [(path / name, each) for name, each in sorted(found.entries.items()) if each < 0]
        for number, folder in self._by_number.items():
            left._by_number.setdefault(number, Folder(dict(folder.durable), dict(folder.durable)))
        left.inodes = contents
        return left

    def killed(self) -> "FaultFileSystem":
        """The same disk after the process died (kill -9): all that was written is read, and what was not flushed may
        still be lost."""
        left = FaultFileSystem(capacity=self.capacity)
        left._next_inode = self._next_inode
        left._by_number = {number: folder.copy() for number, folder in self._by_number.items()}
        numbers = {id(folder): number for number, folder in self._by_number.items()}
        left.folders = {path: left._by_number[numbers[id(folder)]] for path, folder in self.folders.items()}
        left._modified_ms = dict(self._modified_ms)
        left.inodes = {number: inode.copy() for number, inode in self.inodes.items()}
        return left

    @property
    def open_descriptors(self) -> int:
        return len(self._descriptors)

    def _call(self, name: str) -> None:
        self.calls += 1
        self.on_call(self.calls, name)

    def _opened(self, file: OpenFile) -> int:
        self._next_descriptor += 1
        self._descriptors[self._next_descriptor] = file
        return self._next_descriptor

    def _file(self, descriptor: int) -> OpenFile:
        if descriptor not in self._descriptors:
            raise refused(errno.EBADF)
        return self._descriptors[descriptor]

    def _folder_of(self, path: Path) -> Folder:
        if path.parent not in self.folders:
            raise refused(errno.ENOENT, path)
        return self.folders[path.parent]

    def _new_inode(self) -> int:
        self._next_inode += 1
        self.inodes[self._next_inode] = Inode()
        return self._next_inode

    def _free_bytes(self) -> int:
        opened = {id(file.inode) for file in self._descriptors.values()}
        named = {number for folder in self.folders.values() for number in folder.entries.values()}
        alive = (each for number, each in self.inodes.items() if number in named or id(each) in opened)
        return self.capacity - sum(inode.taken for inode in alive)

    def _forget_unused(self) -> None:
        """What no name can lead to any more, whatever a power cut leaves of the names, and that no process has open."""
        named = {number for folder in self._by_number.values() for number in folder.mentioned()}
        opened = {id(file.inode) for file in self._descriptors.values()}
        for number in [each for each in self.inodes if each not in named]:
            if id(self.inodes[number]) not in opened:
                del self.inodes[number]
