#!/usr/bin/env bash
# Makes the virtual environment $1 and installs the project into it, or says in one line what is missing.
# The packages are those of requirements.lock, and pip refuses a file whose SHA-256 is not listed there.
# With a lock of its own as $2, the environment has the packages of that lock, and not the project.
# An environment that was interrupted half way while it was made is thrown away rather than trusted; one that was there
# before stays. With --check it only says whether FOLDER has another Python than the one that PYTHON names.
set -euo pipefail

only_checks=
if [ "${1:-}" = --check ]; then
    only_checks=yes
    shift
fi
venv=${1:?usage: make_venv.sh [--check] FOLDER [LOCK]}
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
lock=${2:-$root/requirements.lock}

fail() {
    echo "kquorum: $1" >&2
    exit "${2:-2}"
}

is_new_enough() {
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null
}

find_python() {
    local candidate
    for candidate in "${PYTHON:-}" python3.11 python3.12 python3.13 python3.14 python3 python; do
        if [ -n "$candidate" ] && command -v "$candidate" >/dev/null && is_new_enough "$candidate"; then
            command -v "$candidate"
            return
        fi
    done
    return 1
}

installation_of() {
    "$1" -c 'import sys; print(sys.base_prefix, sys.version)' 2>/dev/null
}

warn_of_another_python() {
    [ -n "${PYTHON:-}" ] && [ "$(installation_of "$PYTHON")" != "$(installation_of "$venv/bin/python")" ] || return 0
    echo "kquorum: PYTHON=$PYTHON is not the Python of $venv, which stays in use; to make it again: rm -r $venv" >&2
}

if [ -n "$only_checks" ]; then
    warn_of_another_python
    exit
fi

python=$(find_python) || fail "no Python 3.11 or newer on PATH (found: $(python3 --version 2>&1 || echo none)). \
Install one, or name it: make PYTHON=/path/to/python3.11 ..."

if ! "$python" -c 'import venv, ensurepip' 2>/dev/null; then
    version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    fail "$python has no venv and ensurepip modules. On Debian and Ubuntu: apt-get install python$version-venv"
fi

started=$SECONDS
if [ -e "$venv/.kquorum-installed" ] && is_new_enough "$venv/bin/python"; then
    echo "kquorum: bringing $venv up to date with ${lock##*/}"
    warn_of_another_python
    is_made_here=
else
    echo "kquorum: making $venv with $("$python" --version) ($python); packages are downloaded once"
    rm -rf "$venv"
    is_made_here=yes
    trap 'rm -rf "$venv"' ERR INT TERM
    "$python" -m venv "$venv"
fi
# pip compiles one module after the other, for as long as all the rest takes; all cores do it below.
install() {
    "$venv/bin/python" -m pip install --quiet --no-compile --no-deps "$@" && return
    local message="the packages of ${lock##*/} could not be installed; see pip's message above"
    if [ -n "$is_made_here" ]; then
        rm -rf "$venv"
    else
        message="$message. $venv is kept, and may lack what is newer in the lock"
    fi
    fail "$message" 1
}
if [ $# -gt 1 ]; then
    install --require-hashes --only-binary :all: -r "$lock"
    exit
fi
# pip builds what is published as sources only. Its own environments for that would fetch a build backend of any
# version, with no hash; so the locked one comes first, and all is built with it.
build_backend=$(mktemp)
trap 'rm -f "$build_backend"' EXIT
awk '/^[a-z]/ { wanted = /^setuptools==/ } wanted' "$lock" >"$build_backend"
install --require-hashes -r "$build_backend"
install --require-hashes --no-build-isolation --use-pep517 -r "$lock"
# editable_mode=compat puts the sources on the path by a plain .pth file: Spark's workers and mypy understand it.
install --no-build-isolation --editable "$root" --config-settings editable_mode=compat
# pip's script for the command imports `re` before any line of ours can handle Ctrl-C; cli/kquorum handles it first. The
# two lines of shell are those with which pip starts a Python whose path is long or has blanks.
{
    printf '#!/bin/sh\n%s\n%s\n' "'''exec' \"$(cd "$venv/bin" && pwd)/python\" \"\$0\" \"\$@\"" "' '''"
    tail -n +2 "$root/cli/kquorum"
} >"$venv/bin/kquorum"
# Whatever PYTHONDONTWRITEBYTECODE says: else each of a cluster's processes would compile them again. Templates and the
# tests of packages need not be sound.
"$venv/bin/python" -m compileall -qq -j 0 -x '/tests?/' "$venv"/lib/python*/site-packages || true
echo "kquorum: ready in $((SECONDS - started)) s"
