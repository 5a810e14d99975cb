#!/bin/sh
# Makes sure that there is what the tests in this folder need: any Chromium, and axe-core. Where a Chromium can be had without asking anybody (as root,
# or with a sudo that asks for no password) it is installed with the system's package manager; downloading it may take five minutes. axe-core comes from npm
# into test/artifacts. What cannot be had is said, loudly, since `go test` says nothing of what it skips. Never fails: a machine without them can do
# everything else.
set -u
here=$(dirname "$0")

found() {
    for browser in chromium chromium-browser google-chrome google-chrome-stable chrome; do # what tab_test.go looks for
        command -v "$browser" >/dev/null 2>&1 && return 0
    done
    return 1
}

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi
}

# What is downloaded is given up in time; what is unpacked is not, or the system's packages would be left in disorder.
install() {
    if command -v apt-get >/dev/null 2>&1; then
        as_root timeout 60 apt-get update -q &&
            as_root timeout 240 env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends --download-only "$1" &&
            as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends --no-download "$1"
    elif command -v dnf >/dev/null 2>&1; then
        as_root timeout 240 dnf install -y --downloadonly "$1" && as_root dnf install -y -C "$1"
    elif command -v apk >/dev/null 2>&1; then
        as_root timeout 240 apk add "$1"
    else
        return 1
    fi
}

loudly() {
    echo "==================================================================================================" >&2
    for line in "$@"; do echo "$line" >&2; done
    echo "==================================================================================================" >&2
}

log=$(mktemp)
if ! found; then
    echo "No browser is installed; installing Chromium for test/browser." >&2
    install chromium >"$log" 2>&1
fi
if ! found; then
    loudly "NOT TRIED: the web portal in a browser (test/browser), for want of one, and none could be installed." "$(tail -n 3 "$log")" \
        "Install any Chromium (Debian: apt-get install chromium) and run 'make test' again."
else
    axe=$(sed -n 's/^const axeVersion = "\(.*\)"$/\1/p' "$here/axe_test.go")
    folder=$here/../artifacts/axe
    if ! [ -f "$folder/node_modules/axe-core/axe.min.js" ]; then
        mkdir -p "$folder" && timeout 60 npm install --no-save --silent --prefix "$folder" "axe-core@$axe" >"$log" 2>&1
    fi
    [ -f "$folder/node_modules/axe-core/axe.min.js" ] ||
        loudly "NOT TRIED: the check of the portal's pages with axe-core $axe, which could not be had from npm." "$(tail -n 3 "$log")" "The other browser tests run."
fi
rm -f "$log"
exit 0
