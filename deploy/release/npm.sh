#!/bin/sh
# Packs the API's TypeScript client, the hub library for Node and the gateways on it for npm: two packings of the same sources are the same, byte for byte.
#
#   deploy/release/npm.sh DIR [WORK]
#
# DIR gets hubcloud-<name>-<version>.tgz of each package, and hubcloud-npm-licences.txt with the licences of the modules that they need; it ends
# with an error if a module has none of those that npmlicences.mjs allows. WORK is a folder to build in, in or above which the modules of
# hubbridge/package-lock.json are installed; by default they are installed in a temporary one. It needs Node 20 and npm.
set -eu
mkdir -p "$1"
out=$(cd "$1" && pwd) work=${2:-}
cd "$(dirname "$0")/../.."
licences=$PWD/deploy/release/npmlicences.mjs
packages="kit/node gateway/zwave gateway/zigbee2mqtt typescript"
[ -n "$work" ] || { work=$(mktemp -d) && temporary=$work && trap 'rm -rf "$temporary"' EXIT; }
tar -C hubbridge --exclude=node_modules --exclude=dist --exclude='*.tgz' -cf - package.json package-lock.json kit/node gateway \
	-C ../httpapi/client typescript | tar -C "$work" -xf -
cd "$work"
[ -z "${temporary:-}" ] || npm ci --ignore-scripts --no-audit --no-fund --prefer-offline >&2
mkdir -p node_modules/@hubcloud
for package in $packages; do
	name=${package##*/}
	[ "$name" != node ] || name=hub
	ln -sfn "../../$package" "node_modules/@hubcloud/$name"
	node "$(node -p 'require.resolve("typescript/bin/tsc")')" -p "$package"
done
chmod -R go=rX,u+rw kit gateway typescript
chmod +x gateway/*/dist/*/src/main.js
for package in $packages; do
	(cd "$package" && npm pack --ignore-scripts --silent --pack-destination "$out" >&2)
done
node "$licences" package-lock.json >"$out/hubcloud-npm-licences.txt"
