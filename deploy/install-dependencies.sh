#!/bin/sh
# Installs the PostgreSQL server binaries, with which the service runs a private cluster, if they are missing.
# Uses the system's package manager if permitted, and otherwise prints what to install.
set -eu

found() {
    command -v initdb >/dev/null 2>&1 && command -v postgres >/dev/null 2>&1 && return 0
    for dir in /usr/lib/postgresql/*/bin /opt/homebrew/opt/postgresql*/bin /usr/local/opt/postgresql*/bin /usr/pgsql-*/bin; do
        [ -x "$dir/initdb" ] && [ -x "$dir/postgres" ] && return 0
    done
    return 1
}

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; elif command -v sudo >/dev/null 2>&1; then sudo "$@"; else return 1; fi
}

found && exit 0
echo "PostgreSQL's server binaries are not installed; installing them." >&2
if command -v apt-get >/dev/null 2>&1; then
    wanted="apt-get install -y postgresql"
    as_root sh -c 'apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends postgresql' >&2 || true
elif command -v dnf >/dev/null 2>&1; then
    wanted="dnf install -y postgresql-server"
    as_root dnf install -y postgresql-server >&2 || true
elif command -v apk >/dev/null 2>&1; then
    wanted="apk add postgresql"
    as_root apk add postgresql >&2 || true
elif command -v brew >/dev/null 2>&1; then
    wanted="brew install postgresql@17"
    brew install postgresql@17 >&2 || true
else
    wanted="your system's PostgreSQL server package (15 or newer)"
fi
found && exit 0
echo "PostgreSQL is still missing. Install it by hand: $wanted" >&2
exit 1
