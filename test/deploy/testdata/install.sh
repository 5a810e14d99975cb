#!/bin/sh
# Installs a package on a copy of this machine, starts the service as its unit does, upgrades, removes and purges it.
#
#   unshare --mount --pid --fork --kill-child install.sh DIR FIRST.deb SECOND.deb
#
# The copy is an overlay on DIR; the machine itself stays unchanged. The environment has the service's addresses in HTTP, MQTT, NATS and
# ADMIN. The exit code is 77 if there can be no overlay here.
set -eu

fail() { echo "FAILED: $*" >&2; exit 1; }

if [ "${1:-}" != inside ]; then
	mount -t tmpfs tmpfs "$1" || exit 77
	mkdir "$1/upper" "$1/work" "$1/root"
	mount -t overlay overlay -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" "$1/root" || exit 77
	mount -t proc proc "$1/root/proc" && mount --rbind /dev "$1/root/dev" || exit 77
	mount -t tmpfs tmpfs "$1/root/tmp" && chmod 1777 "$1/root/tmp"
	mkdir "$1/root/packages"
	cp "$2" "$1/root/packages/first.deb"
	cp "$3" "$1/root/packages/second.deb"
	cp "$0" "$1/root/packages/install.sh"
	exec chroot "$1/root" sh /packages/install.sh inside
fi

cd /
unit=/usr/lib/systemd/system/hubcloud.service
setting() { sed -n "s/^$1=//p" "$unit"; }
data=/var/lib/hubcloud

# start runs ExecStart as the unit's user with the unit's environment, and waits until the service is ready.
start() {
	(
		set -a
		. "$(setting EnvironmentFile | sed 's/^-//')"
		eval "$(setting Environment)"
		HUBCLOUD_HTTP=$HTTP HUBCLOUD_MQTT=$MQTT HUBCLOUD_NATS=$NATS HUBCLOUD_ADMIN=$ADMIN
		exec setpriv --reuid "$(setting User)" --regid "$(setting Group)" --clear-groups --no-new-privs \
			env --unset=HTTP --unset=NATS HOME=$data $(setting ExecStart)
	) >/tmp/log 2>&1 &
	service=$!
	tries=0
	until as hubcloud ready --data-dir $data >/dev/null 2>&1; do
		kill -0 $service 2>/dev/null || { cat /tmp/log; fail "the service ended"; }
		tries=$((tries + 1))
		[ $tries -lt 240 ] || { cat /tmp/log; fail "not ready in time"; }
		sleep 0.25
	done
}
stop() {
	kill -TERM $service
	wait $service || { cat /tmp/log; fail "the service's exit code is $?"; }
}
as() { setpriv --reuid hubcloud --regid hubcloud --clear-groups "$@"; }

rm -f /var/lib/man-db/auto-update # indexing all manual pages of the machine takes seconds and tries nothing
dpkg --install /packages/first.deb
[ "$(stat -c '%U %a' $data)" = "hubcloud 750" ] || fail "data directory: $(stat -c '%U %a' $data)"
[ "$(stat -c '%U %a' /etc/hubcloud.env)" = "root 600" ] || fail "hubcloud.env: $(stat -c '%U %a' /etc/hubcloud.env)"
grep -q "Apache License" /usr/share/doc/hubcloud/copyright || fail "no licences"
for page in hubcloud hubcloud-serve hubcloud-org-create; do
	gzip -dc /usr/share/man/man1/$page.1.gz | grep -q 'data.-dir\|Commands:' || fail "manual page $page"
done
commands=$(hubcloud --help | sed '1,/^Commands:/d' | grep -c '^  [a-z]')
pages=$(ls /usr/share/man/man1/hubcloud-*.1.gz | wc -l)
[ "$commands" = "$pages" ] || fail "$pages manual pages of $commands commands"
bash -c '. /usr/share/bash-completion/completions/hubcloud; COMP_WORDS=(hubcloud org cr); COMP_CWORD=2; _hubcloud; [ "${COMPREPLY[*]}" = create ]' ||
	fail "completion in bash"
start
as hubcloud org create --data-dir $data --name Acme --owner-email ann@example.org
stop

echo '# kept' >>/etc/hubcloud.env
dpkg --install /packages/second.deb
grep -q '^# kept$' /etc/hubcloud.env || fail "the upgrade replaced hubcloud.env"
[ "$(dpkg-query -W -f '${Version}' hubcloud)" = 9.0.1 ] || fail "version: $(dpkg-query -W hubcloud)"
start
as hubcloud org list --data-dir $data | grep -q Acme || fail "the organization is missing after the upgrade"
stop

dpkg --remove hubcloud
[ ! -e /usr/bin/hubcloud ] && [ -e /etc/hubcloud.env ] && [ -d $data/nats ] || fail "removal: $(ls -d /usr/bin/hubcloud /etc/hubcloud.env $data/*)"
dpkg --purge hubcloud
[ ! -e /etc/hubcloud.env ] && [ -d $data/nats ] || fail "purge: $(ls -d /etc/hubcloud.env $data/*)"
