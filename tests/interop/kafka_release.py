"""A release of Apache Kafka from Maven Central, fetched once into a folder outside the project.

The jars of the usual release are listed with their checksums (`listed_jars`). Those of another one
(KQUORUM_INTEROP_KAFKA) are found by Maven, which resolves the dependencies, checks each jar against its published
checksum and fails otherwise (`--strict-checksums`). The folder is KQUORUM_INTEROP_CACHE, or `kquorum-interop` in the
user's cache.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from kquorum.cli.commands.audit.java import check_java
from kquorum.cli.failures import CliError
from tests.interop.listed_jars import NotFetched, fetch_listed, list_of

VERSION = os.environ.get("KQUORUM_INTEROP_KAFKA", "4.3.1")
_PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:build-classpath"
_DOWNLOAD_TIMEOUT_S = 300

# Kafka Connect is of no use here, and brings a web server along.
_UNUSED = ("connect-runtime", "connect-json", "connect-api")


class Unavailable(Exception):
    """Kafka cannot be had here; the message says why."""


@dataclass(frozen=True, slots=True)
class KafkaRelease:
    """What it takes to run a class of Kafka's. `archive` is where its classes lie ready parsed, once a server made it:
    the JVM starts in half the time with it."""

    java: str
    classpath: str
    archive: Path


def find_release(version: str = VERSION) -> KafkaRelease:
    """Fetch what is missing. Raises Unavailable without Java 17 or a network."""
    try:
        check_java()
    except CliError as error:
        raise Unavailable(str(error)) from None
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    assert java is not None, "Java was found a moment ago"
    folder = cache_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _locked(folder):
            return KafkaRelease(java, _classpath(folder, version), folder / _archive_name(java, version))
    except OSError as error:
        raise Unavailable(f"the cache {folder} cannot be used: {error}") from error


def cache_folder() -> Path:
    named = os.environ.get("KQUORUM_INTEROP_CACHE")
    if named:
        return Path(named)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kquorum-interop"


def _archive_name(java: str, version: str) -> str:
    """Another one for each JVM and release, as a JVM takes none but its own."""
    binary = Path(java).resolve()
    kind = f"{binary}-{binary.stat().st_mtime_ns}"
    return f"classes-{version}-{hashlib.sha256(kind.encode()).hexdigest()[:12]}.jsa"


def _classpath(folder: Path, version: str) -> str:
    """As it was resolved before, if all of it is still there."""
    known = folder / f"classpath-{version}.txt"
    classpath = known.read_text().strip() if known.exists() else ""
    if not classpath or not all(map(os.path.exists, classpath.split(os.pathsep))):
        _resolve(folder, known, version)
        classpath = known.read_text().strip()
    return classpath


def _resolve(folder: Path, result: Path, version: str) -> None:
    listed = list_of(version)
    if listed is not None:
        try:
            result.write_text(fetch_listed(listed, folder / "repository"))
        except NotFetched as error:
            raise Unavailable(str(error)) from None
        return
    maven = shutil.which("mvn")
    if maven is None:
        raise Unavailable("Maven (mvn) is not installed, and fetches Apache Kafka for these tests")
    project = folder / "pom.xml"
    project.write_text(_project(version))
    fresh = result.with_suffix(".new")
    command = [maven, "--batch-mode", "--quiet", "--strict-checksums", "--file", str(project), _PLUGIN]
    command += [f"-Dmaven.repo.local={folder / 'repository'}", f"-Dmdep.outputFile={fresh}"]
    command += ["-Dmdep.includeScope=runtime", f"-Dmdep.pathSeparator={os.pathsep}"]
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=_DOWNLOAD_TIMEOUT_S,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired:
        raise Unavailable(f"Maven did not get Apache Kafka within {_DOWNLOAD_TIMEOUT_S} s") from None
    if done.returncode or not fresh.exists():
        complaint = next((line for line in done.stdout.splitlines() if "ERROR" in line), done.stderr[-300:])
        raise Unavailable(f"Maven cannot get Apache Kafka {version}: {complaint[:300]}")
    jars = fresh.read_text().strip().split(os.pathsep)
    fresh.write_text(os.pathsep.join(each for each in jars if not _is_other_logging(Path(each).name)))
    fresh.replace(result)


def _is_other_logging(jar: str) -> bool:
    """A release's own binding of SLF4J, beside the simple one: without a config it logs nothing."""
    return jar.startswith(("slf4j-reload4j", "log4j-slf4j"))


def _project(version: str) -> str:
    excluded = "".join(
        f"<exclusion><groupId>org.apache.kafka</groupId><artifactId>{name}</artifactId></exclusion>"
        for name in _UNUSED
    )
    wanted = [("org.apache.kafka", name, version) for name in ("kafka_2.13", "kafka-shell", "kafka-tools")]
    wanted.append(("org.slf4j", "slf4j-simple", "1.7.36"))
    dependencies = "".join(
        f"<dependency><groupId>{group}</groupId><artifactId>{name}</artifactId><version>{version}</version>"
        f"<exclusions>{excluded}</exclusions></dependency>"
        for group, name, version in wanted
    )
    return (
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
        "<groupId>kquorum</groupId><artifactId>interop</artifactId><version>1</version>"
        f"<dependencies>{dependencies}</dependencies></project>"
    )


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """One test process fetches, the others wait for it."""
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
