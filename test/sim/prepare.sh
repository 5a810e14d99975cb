#!/bin/sh
# Copies the module nats-server from the module cache to .nats-server and applies nats-server.patch,
# unless the copy is of this version and patch already.
set -eu
cd "$(dirname "$0")"
GO=${GO:-go}
module=github.com/nats-io/nats-server/v2
version=$(cd ../.. && GOWORK=off $GO list -m -f '{{.Version}}' $module)
stamp="$version $(cksum < nats-server.patch)"
[ "$(cat .nats-server/.stamp 2>/dev/null || true)" != "$stamp" ] || exit 0

GOWORK=off $GO -C ../.. mod download $module
source=$(cd ../.. && GOWORK=off $GO list -m -f '{{.Dir}}' $module)
rm -rf .nats-server
mkdir .nats-server
(cd "$source" && find . -name '*.go' ! -name '*_test.go' -o -name go.mod -o -name LICENSE) |
	tar -C "$source" -cf - -T - | tar -C .nats-server -xf - --no-same-permissions
chmod -R u+w .nats-server
patch --quiet --directory .nats-server --strip 1 < nats-server.patch
echo "$stamp" > .nats-server/.stamp
