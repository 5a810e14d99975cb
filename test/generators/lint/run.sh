#!/bin/sh
# Checks openapi.yaml and openapi-root.yaml with Redocly and Spectral, where warnings count as errors, and generates a client of each with orval.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
api=$(cd "$here/../../../httpapi" && pwd)
dir=$here/../../artifacts/lint-api
mkdir -p "$dir"
cp "$here/package.json" "$here/package-lock.json" "$dir"
cd "$dir"
if ! cmp -s package-lock.json node_modules/installed; then
    if ! timeout 600 npm ci --ignore-scripts --no-audit --no-fund --prefer-offline; then
        echo "lint-api: NOT TRIED: npm could not install the tools within ten minutes, see above"
        exit 0
    fi
    cp package-lock.json node_modules/installed
fi
PATH=$PWD/node_modules/.bin:$PATH
for name in openapi openapi-root; do
    report=$name.redocly.txt
    timeout 600 redocly lint --config "$here/redocly.yaml" --format=stylish "$api/$name.yaml" >"$report" 2>&1 || { cat "$report"; exit 1; }
    if grep -E '(^|[^a-z])(warning|error)  ' "$report"; then exit 1; fi
    timeout 600 spectral lint --ruleset "$here/spectral.yaml" --fail-severity=hint "$api/$name.yaml"
    timeout 600 orval --input "$api/$name.yaml" --output "$name.ts" --client fetch
    timeout 600 tsc --noEmit --strict --target es2022 --lib es2022,dom --module nodenext "$name.ts"
done
echo "openapi.yaml and openapi-root.yaml: no findings; orval's clients compile"
