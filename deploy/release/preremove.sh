#!/bin/sh
# Before a removal: stops the service. The data directory and the user stay. $1 is `remove` (deb) or 0 (rpm); an upgrade passes another.
set -eu
case "${1:-}" in remove | 0) ;; *) exit 0 ;; esac
if [ -z "${DPKG_ROOT:-}" ] && [ -d /run/systemd/system ]; then
	systemctl disable --now hubcloud.service
fi
