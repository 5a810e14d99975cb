#!/bin/sh
# Makes the two changed copies that the simulator is built with, unless they are up to date:
#
#   .patched/nats-server     the module from the module cache, with nats-server.patch
#                            and simSync in place of each sync of a file
#   .patched/runtime2.go     of Go's runtime: a goroutine that waits for a mutex counts as waiting in
#                            virtual time. Otherwise virtual time stands still for good when the
#                            holder of a mutex waits for an answer, as clients of the network do.
#                            .patched/overlay.json makes the compiler use it.
set -eu
cd "$(dirname "$0")"
GO=${GO:-go}
module=github.com/nats-io/nats-server/v2
version=$(cd ../.. && GOWORK=off $GO list -m -f '{{.Version}}' $module)
stamp="$($GO version) $(pwd) $version $(cat prepare.sh nats-server.patch | cksum)"
[ "$(cat .patched/stamp 2>/dev/null || true)" != "$stamp" ] || exit 0

rm -rf .patched
mkdir -p .patched/nats-server
GOWORK=off $GO -C ../.. mod download $module
source=$(cd ../.. && GOWORK=off $GO list -m -f '{{.Dir}}' $module)
(cd "$source" && find . -name '*.go' ! -name '*_test.go' -o -name go.mod -o -name LICENSE) |
	tar -C "$source" -cf - -T - | tar -C .patched/nats-server -xf -
chmod -R u+w .patched
patch --quiet --directory .patched/nats-server --strip 1 < nats-server.patch
# Whatever is synced is noted, so that a power cut can take the rest (SimSynced).
sed -i 's/\<\(\(mb\.\|n\.\)\?[a-zA-Z]*\)\.Sync()/simSync(\1)/' .patched/nats-server/server/filestore.go \
	.patched/nats-server/server/raft.go

runtime=$($GO env GOROOT)/src/runtime/runtime2.go
sed 's/^\twaitReasonSyncCondWait: *true,/&\
\twaitReasonSyncMutexLock: true,\
\twaitReasonSyncRWMutexRLock: true,\
\twaitReasonSyncRWMutexLock: true,/' "$runtime" > .patched/runtime2.go
grep -q '^	waitReasonSyncMutexLock: true,$' .patched/runtime2.go
printf '{"Replace": {"%s": "%s/.patched/runtime2.go"}}\n' "$runtime" "$(pwd)" > .patched/overlay.json
echo "$stamp" > .patched/stamp
