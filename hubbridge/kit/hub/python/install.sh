#!/bin/sh
# Installs what hub.py needs beside Python, so that the tests try it: paho-mqtt, where Debian's package can be had without asking anybody (as root, or
# with a sudo that asks for no password). Takes three minutes at most and never fails: without paho-mqtt the test of hub.py is skipped.
set -u

found() {
    for python in python3 /usr/bin/python3; do
        "$python" -c 'import paho.mqtt.client' >/dev/null 2>&1 && return 0
    done
    return 1
}

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi
}

found && exit 0
if command -v apt-get >/dev/null 2>&1; then
    {
        as_root timeout 60 apt-get update -q &&
            as_root timeout 60 env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends --download-only python3-paho-mqtt &&
            as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends --no-download python3-paho-mqtt
    } >/dev/null 2>&1
fi
found || echo "NOT TRIED: the hub in Python (hubbridge/kit/hub/python), for want of paho-mqtt (Debian: apt-get install python3-paho-mqtt)." >&2
exit 0
