#!/bin/sh
# Prints the licences and notices of everything that a binary contains: the modules that the binary names, Go's standard library, and the
# script that the portal serves. It ends with an error if a module has no licence, or none of ALLOWED.
#
#   deploy/release/licences.sh BINARY [PACKAGE] > copyright
#
# GOOS and GOARCH must be those of the binary. PACKAGE is what was built, ./cmd/hubcloud by default.
set -eu
ALLOWED=Apache-2.0,BSD-2-Clause,BSD-3-Clause,EPL-2.0,ISC,MIT
binary=$(realpath "$1") package=${2:-./cmd/hubcloud}
cd "$(dirname "$0")/../.."
go=${GO:-go}
export GOWORK=off
tool=$(GOOS='' GOARCH='' "$go" tool -modfile=test/tools/go.mod -n go-licenses)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
licences() {
	"$tool" "$@" >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
}
licences check "$package" --allowed_licenses="$ALLOWED"
licences save "$package" --save_path="$work/saved"

section() { # section TITLE FILE…
	printf '\n%s\n%s\n\n' "$1" "$(echo "$1" | sed 's/./=/g')"
	shift
	cat "$@"
}
cat <<TEXT
hubcloud is licensed under the Apache License 2.0; the text stands below. The program contains the modules that follow, each under its own licence.
The command "go mod download <module>@<version>" fetches the source of each.
TEXT
section hubcloud LICENSE
section "Go standard library $("$go" env GOVERSION)" "$("$go" env GOROOT)/LICENSE"
"$go" version -m "$binary" | awk '$1 == "dep" { print $2, $3 }' >"$work/modules"
while read -r module version; do
	files=$(cd "$work/saved" && find "$module" -type f \( -iname 'licen*' -o -iname 'copying*' -o -iname 'notice*' \) 2>/dev/null | sort)
	# Modules inside this one have sections of their own.
	for inner in $(awk -v outer="$module/" 'index($1, outer) == 1 { print $1 }' "$work/modules"); do
		files=$(echo "$files" | grep -v "^$inner/" || true)
	done
	[ -n "$files" ] || { echo "licences.sh: $module has no licence" >&2; exit 1; }
	(cd "$work/saved" && section "$module $version" $files)
done <"$work/modules"
section "uPlot, in the portal's pages" httpapi/portal/assets/uPlot.LICENSE.txt
