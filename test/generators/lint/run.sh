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
set -- "$api/openapi.yaml" "$api/openapi-root.yaml"
redocly lint --config "$here/redocly.yaml" --format=stylish "$@" >redocly.txt 2>&1 || { cat redocly.txt; exit 1; }
if grep -E '(^|[^a-z])(warning|error)  ' redocly.txt; then exit 1; fi
spectral lint --ruleset "$here/spectral.yaml" --fail-severity=hint "$@"
for described in "$@"; do
    orval --input "$described" --output "$(basename "$described" .yaml).ts" --client fetch
done
# The declarations of the browser and of Node are not checked: that would take most of the time.
tsc --noEmit --strict --skipLibCheck --target es2022 --lib es2022,dom --module nodenext openapi.ts openapi-root.ts
echo "openapi.yaml and openapi-root.yaml: no findings; orval's clients compile"
