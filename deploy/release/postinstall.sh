#!/bin/sh
# After an installation or an upgrade: creates the user and the data directory. It enables and starts nothing; an upgrade restarts a
# running service. One that does not start is no error of the package: systemd tries again, and the package manager could not go on.
set -eu
root=${DPKG_ROOT:-}

if ! grep -q '^hubcloud:' "$root/etc/passwd"; then
	useradd ${root:+--prefix "$root"} --system --user-group --home-dir /var/lib/hubcloud --no-create-home \
		--shell /usr/sbin/nologin hubcloud
fi
owner=$(sed -n 's/^hubcloud:[^:]*:\([0-9]*\):\([0-9]*\):.*/\1:\2/p' "$root/etc/passwd")
if [ ! -d "$root/var/lib/hubcloud" ]; then
	mkdir -p "$root/var/lib/hubcloud"
	chmod 0750 "$root/var/lib/hubcloud"
	chown "$owner" "$root/var/lib/hubcloud"
fi
if [ -z "$root" ] && [ -d /run/systemd/system ]; then
	systemctl daemon-reload
	systemctl try-restart hubcloud.service || echo "hubcloud does not start; see journalctl --unit hubcloud" >&2
fi
