#!/bin/sh
# Prints the linker's flags that record VERSION, COMMIT and BUILD_DATE in the binary. stamp.sh determines those that the environment does
# not set.
set -eu
stamp=$("$(dirname "$0")/stamp.sh")
value() { echo "$stamp" | sed -n "s/^$1=//p"; }
build=hubcloud/cmd/hubcloud/internal/installation
echo "-X $build.version=$(value VERSION) -X $build.commit=$(value COMMIT) -X $build.date=$(value BUILD_DATE)"
