#!/usr/bin/env bash
# Builds the servers that the comparison measures beside hubcloud, from their published source, into a folder.
# Mercure is built without Caddy (mercure.go); ntfy replaces a module, so `go install` cannot build it: both are cloned.
# A server that is in the folder already is not built again, so that binaries of your own can be measured.
set -euo pipefail

CENTRIFUGO=v6.9.1
MERCURE=v0.24.2
NTFY=v2.13.0

here=$(cd "$(dirname "$0")" && pwd)
bin=$1
mkdir -p "$bin"
bin=$(cd "$bin" && pwd)
export GOWORK=off GOGC=400
source=$(mktemp -d)
trap 'rm -rf "$source"' EXIT

clone() { git -c advice.detachedHead=false clone -q --depth 1 --branch "$2" "https://github.com/$1" "$3"; }

if ! [ -x "$bin/centrifugo" ]; then
	echo "building Centrifugo $CENTRIFUGO"
	GOBIN=$bin go install -ldflags="-w -X github.com/centrifugal/centrifugo/v6/internal/build.Version=${CENTRIFUGO#v}" \
		"github.com/centrifugal/centrifugo/v6@$CENTRIFUGO"
fi
if ! [ -x "$bin/mercure" ]; then
	echo "building Mercure $MERCURE"
	clone dunglas/mercure "$MERCURE" "$source/mercure"
	go -C "$source/mercure" build -ldflags=-w -o "$bin/mercure" "$here/mercure.go"
fi
if ! [ -x "$bin/ntfy" ]; then
	echo "building ntfy $NTFY, without its web pages"
	clone binwiederhier/ntfy "$NTFY" "$source/ntfy"
	mkdir -p "$source/ntfy/server/docs" "$source/ntfy/server/site"
	touch "$source/ntfy/server/docs/index.html" "$source/ntfy/server/site/app.html"
	CGO_ENABLED=1 go -C "$source/ntfy" build -tags sqlite_omit_load_extension,osusergo,netgo \
		-ldflags="-w -X main.version=${NTFY#v}" -o "$bin/ntfy" .
fi
