#!/bin/sh
# Builds the binary for this machine, and tells meanwhile how far it is: the first build downloads 55 modules and compiles 530 packages.
#
#   deploy/build.sh bin/hubcloud
set -eu
cd "$(dirname "$0")/.."
go=${GO:-go}
# Collecting garbage less often saves the compiler a quarter of its time, and writing nothing for debuggers a tenth; stacks and profiles
# have their lines all the same. A release has no C in it either.
export CGO_ENABLED=0 GOWORK=off GOGC=400
quick=-gcflags=all=-dwarf=false

# While modules are downloaded, the processors compile what needs none.
"$go" build $quick net/http html/template encoding/gob &
total=$("$go" list -deps ./cmd/hubcloud | wc -l)
wait
every=25 end='\n'
[ ! -t 1 ] || every=1 end='\r'
{
	"$go" build -v $quick -ldflags "-w $(deploy/release/ldflags.sh)" -o "$1" ./cmd/hubcloud 2>&1 && echo "exit 0" || echo "exit $?"
} | awk -v every=$every -v total="$total" -v end="$end" '
	$1 == "exit" { code = $2; next }
	/^[A-Za-z0-9._\/-]+$/ {
		if (++n % every == 0) { printf "compiled %d of up to %d packages%s", n, total, end; fflush() }
		next
	}
	{ if (n && end == "\r") print ""; print; n = 0 }
	END { if (n && end == "\r") print ""; exit code }'
