#!/usr/bin/env bash
# Makes the virtual environment $1 and installs the project into it, or says in one line what is missing.
# An environment that was interrupted half way is thrown away rather than trusted.
set -euo pipefail

venv=${1:?usage: make_venv.sh FOLDER}
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

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

python=$(find_python) || fail "no Python 3.11 or newer on PATH (found: $(python3 --version 2>&1 || echo none)). \
Install one, or name it: make PYTHON=/path/to/python3.11 ..."

if ! "$python" -c 'import venv, ensurepip' 2>/dev/null; then
    version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    fail "$python has no venv and ensurepip modules. On Debian and Ubuntu: apt-get install python$version-venv"
fi

started=$SECONDS
if [ -e "$venv/.kquorum-installed" ] && is_new_enough "$venv/bin/python"; then
    echo "kquorum: bringing $venv up to date with pyproject.toml"
else
    echo "kquorum: making $venv with $("$python" --version) ($python); packages are downloaded once"
    rm -rf "$venv"
    trap 'rm -rf "$venv"' ERR INT TERM
    "$python" -m venv "$venv"
fi
# editable_mode=compat puts the sources on the path by a plain .pth file: Spark's workers and mypy understand it.
# pip compiles one module after the other, for as long as all the rest takes; all cores do it below.
"$venv/bin/python" -m pip install --quiet --no-compile --editable "$root[dev]" --config-settings editable_mode=compat \
    || { rm -rf "$venv"; fail "the packages of pyproject.toml could not be installed; see pip's message above" 1; }
# Whatever PYTHONDONTWRITEBYTECODE says: else each of a cluster's processes would compile them again. Templates and the
# tests of packages need not be sound.
"$venv/bin/python" -m compileall -qq -j 0 -x '/tests?/' "$venv"/lib/python*/site-packages || true
echo "kquorum: ready in $((SECONDS - started)) s"
