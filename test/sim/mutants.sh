#!/bin/sh
# Builds the simulator once with each patch of mutants, which puts a defect back into the service,
# runs TestHealing, and then seeds until one finds it. Prints a line for each: what found it, or that
# nothing did.
# Usage: mutants.sh [SEEDS [PATCH...]]
set -eu
cd "$(dirname "$0")"
GO=${GO:-go}
seeds=${1:-200}
[ $# -eq 0 ] || shift
[ $# -gt 0 ] || set -- mutants/*.patch
./prepare.sh
root=$(cd ../.. && pwd)
export GOWORK=off
for patch in "$@"; do
	name=$(basename "$patch" .patch)
	dir=$(pwd)/.patched/mutants/$name
	rm -rf "$dir" && mkdir -p "$dir"
	overlay=$(sed 's/}}$//' .patched/overlay.json)
	for file in $(sed -n 's,^+++ b/,,p' "$patch"); do
		mkdir -p "$dir/$(dirname "$file")"
		cp "$root/$file" "$dir/$file"
		overlay="$overlay, \"$root/$file\": \"$dir/$file\""
	done
	patch --quiet --directory "$dir" --strip 1 < "$patch"
	echo "$overlay}}" > "$dir/overlay.json"
	$GO test -overlay="$dir/overlay.json" -c -o "$dir/sim.test" .
	begun=$(date +%s)
	if ! "$dir/sim.test" -test.run '^TestHealing$' > "$dir/log" 2>&1; then
		echo "$name: found by TestHealing, $(($(date +%s) - begun)) s"
		continue
	fi
	MUTANT=1 ./run.sh "$dir/sim.test" 1 "$seeds" > "$dir/log" 2>&1 || true
	found=$(sed -n 's/.*repeat it with.*SEED=\([0-9]*\).*/\1/p' "$dir/log" | sort -n | head -1)
	echo "$name: ${found:+found by seed }${found:-not found in $seeds seeds}, $(($(date +%s) - begun)) s"
done
