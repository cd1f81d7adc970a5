"""Folders in an object store, by their URLs: `s3://bucket/prefix`, `gs://...`, `abfs://...`, as pyarrow has them.

Credentials and region are those of the environment (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_DEFAULT_REGION, a
profile, the machine's role). AWS_ENDPOINT_URL names the server of a store that is S3-compatible.
"""

import os
import re
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import urlsplit

from kquorum.cli.failures import CliError, ExitStatus

_URL = re.compile(r"[a-z][a-z0-9+.-]*://")


def is_url(place: str) -> bool:
    return _URL.match(place) is not None


def upload(folder: Path, url: str, *, last: str) -> str:
    """Copy the files of `folder` below `url`, into a folder of the same name; the file named `last` comes last, so a
    copy that has it is whole. Returns its URL. Raises CliError, also where there is such a folder already."""
    from pyarrow import fs

    store, base = _open(url)
    target = f"{base}/{folder.name}"
    try:
        if store.get_file_info(fs.FileSelector(target, allow_not_found=True)):
            raise CliError(f"{url}/{folder.name} exists already", status=ExitStatus.USAGE)
        files = sorted(path for path in folder.rglob("*") if path.is_file())
        for path in sorted(files, key=lambda each: each.name == last):
            name = str(PurePosixPath(target) / path.relative_to(folder).as_posix())
            if isinstance(store, fs.LocalFileSystem):  # elsewhere a folder is a part of a name
                store.create_dir(str(PurePosixPath(name).parent), recursive=True)
            with store.open_output_stream(name) as stream:
                stream.write(path.read_bytes())
    except OSError as error:
        raise _failed(url, "written to", error) from error
    return f"{url.rstrip('/')}/{folder.name}"


def download(url: str, to: Path) -> Path:
    """Copy what is below `url` into a new folder of that name in `to`. Raises CliError."""
    from pyarrow import fs

    store, base = _open(url)
    folder = to / PurePosixPath(base).name
    try:
        found = store.get_file_info(fs.FileSelector(base, recursive=True, allow_not_found=True))
        files = [each.path for each in found if each.type is fs.FileType.File]
        if not files:
            raise CliError(f"{url}: there is nothing", status=ExitStatus.USAGE)
        for name in files:
            path = folder / PurePosixPath(name).relative_to(base)
            if not path.resolve().is_relative_to(folder.resolve()):
                raise CliError(f"{url}: {name} lies outside of it", status=ExitStatus.DAMAGED_INPUT)
            path.parent.mkdir(parents=True, exist_ok=True)
            with store.open_input_stream(name) as stream:
                path.write_bytes(stream.read())
    except OSError as error:
        raise _failed(url, "read", error) from error
    return folder


def _open(url: str) -> tuple[Any, str]:
    """The file system, and the path in it."""
    from pyarrow import fs

    endpoint = os.environ.get("AWS_ENDPOINT_URL")
    parts = urlsplit(url)
    try:
        if parts.scheme == "s3" and endpoint:
            server = urlsplit(endpoint)
            store = fs.S3FileSystem(endpoint_override=server.netloc, scheme=server.scheme or "https")
            return store, f"{parts.netloc}{parts.path}".rstrip("/")
        store, path = fs.FileSystem.from_uri(url)
    except (OSError, ValueError) as error:
        raise _failed(url, "opened", error) from error
    return store, path.rstrip("/")


def _failed(url: str, what: str, error: Exception) -> CliError:
    said = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    return CliError(
        f"{url} cannot be {what}: {said}. Check the URL, the credentials in the environment, and AWS_ENDPOINT_URL for "
        "an S3-compatible store",
        status=ExitStatus.IO_ERROR,
    )
