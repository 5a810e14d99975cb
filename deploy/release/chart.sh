#!/bin/sh
# Packs the Helm chart for a version, as hubcloud-<version>.tgz, and prints the file's name.
#
#   deploy/release/chart.sh DIR VERSION
#
# SOURCE_DATE_EPOCH is the time of its files, by default 0.
set -eu
out=$(cd "$1" && pwd) version=$2
cd "$(dirname "$0")/../helm"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# A link leads to the alerts.
cp -RL hubcloud "$work/"
sed -i "s/^\(version\|appVersion\): .*/\1: $version/" "$work/hubcloud/Chart.yaml"
tar --sort=name --mtime="@${SOURCE_DATE_EPOCH:-0}" --owner=0 --group=0 --numeric-owner --mode=go=rX,u+rw -C "$work" -cf - hubcloud |
	gzip -n -9 >"$out/hubcloud-$version.tgz"
echo "$out/hubcloud-$version.tgz"
