#!/bin/sh
# Runs seeds with a built simulator, each in a process of its own, and prints what each says when it
# has ended. With MUTANT=1 it starts no more seeds once one has failed. JOBS is how many run at a time.
# Usage: run.sh BINARY FIRST SEEDS [FLAG...]
set -eu
cd "$(dirname "$0")"
binary=$1 first=$2 seeds=$3
shift 3
TMPDIR=$(mktemp -d "$(test -d /dev/shm && echo /dev/shm || echo /tmp)/sim.XXXXXX")
export TMPDIR
trap 'rm -rf "$TMPDIR"' EXIT
failed=1
[ -z "${MUTANT:-}" ] || failed=255 # which ends xargs
seq "$first" $((first + seeds - 1)) |
	xargs -P "${JOBS:-$(getconf _NPROCESSORS_ONLN)}" -I SEED sh -c '
		status=0 failed=$1 binary=$2
		shift 2
		"$binary" -test.run "^TestSim$" -test.v -test.timeout 20m -seed=SEED "$@" \
			> "$TMPDIR/SEED.log" 2>&1 || status=$failed
		grep -v -E "^(=== |PASS|FAIL$|--- (PASS|SKIP): )" "$TMPDIR/SEED.log"
		exit $status' sh "$failed" "$binary" "$@"
