#!/bin/sh
# Prints what identifies a build of this checkout, as lines NAME=VALUE for `make` and `docker build --build-arg`:
#
#   VERSION     the tag of the commit without its v; without a tag <the changelog's newest>-dev.<time of the commit>.g<commit>, which sorts
#               before the release; "unknown" outside a git checkout
#   COMMIT      the commit, with the suffix -dirty if tracked files differ from it
#   BUILD_DATE  the time of the commit, so that two builds of a commit are the same
#
# VERSION, COMMIT and BUILD_DATE of the environment take precedence.
set -eu
cd "$(dirname "$0")/../.."

version=unknown commit=unknown date=unknown
if hash=$(git rev-parse --verify --quiet HEAD 2>/dev/null); then
	dirty=
	git diff --quiet HEAD -- 2>/dev/null || dirty=-dirty
	commit=$hash$dirty
	date=$(TZ=UTC git log -1 --date=format-local:%Y-%m-%dT%H:%M:%SZ --format=%cd)
	tag=$(git describe --tags --exact-match --match 'v[0-9]*' 2>/dev/null) || tag=
	if [ -n "$tag" ] && [ -z "$dirty" ]; then
		version=${tag#v}
	else
		time=$(TZ=UTC git log -1 --date=format-local:%Y%m%d%H%M%S --format=%cd)
		next=$(sed -n '/^## /{s/^## //p;q}' CHANGELOG.md)
		version=$next-dev.$time.g$(git rev-parse --short=12 HEAD)$dirty
	fi
fi
echo "VERSION=${VERSION:-$version}"
echo "COMMIT=${COMMIT:-$commit}"
echo "BUILD_DATE=${BUILD_DATE:-$date}"
