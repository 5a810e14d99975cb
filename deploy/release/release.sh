#!/bin/sh
# Builds a release reproducibly: two builds of a commit have the same checksums.
#
#   deploy/release/release.sh DIR linux/amd64 darwin/arm64 …
#
# DIR gets the Helm chart, the packages for npm and, for each platform, an archive with the static binary, the documents and examples, and SBOMs (CycloneDX, SPDX); for Linux also a .deb
# and a .rpm. provenance.json says how they were built (in-toto, SLSA), and SHA256SUMS has the checksums of all. With SIGNING_KEY, the file of a
# minisign key, SHA256SUMS.minisig is its signature.
#
# FORMATS names what to make of tar.gz, deb, rpm and npm; by default all. LEVEL is how hard they are compressed, from 1 to 9, the default. PREBUILT is
# a binary for all platforms to take in place of a build, and COPYRIGHT a file with the licences of what it contains. MAINTAINER is who answers for
# the packages, by default whoever committed last.
set -eu
umask 022
FORMATS=${FORMATS:-tar.gz deb rpm npm} LEVEL=${LEVEL:-9}
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
out=$(cd "$1" && pwd)
shift
cd "$here/../.."
go=${GO:-go}
rm -f "$out"/hubcloud[-_]* "$out"/SHA256SUMS* "$out"/provenance.json

stamp=$("$here/stamp.sh")
value() { echo "$stamp" | sed -n "s/^$1=//p"; }
VERSION=$(value VERSION) COMMIT=$(value COMMIT) BUILD_DATE=$(value BUILD_DATE)
DATE=$BUILD_DATE
case $DATE in *T*) ;; *) DATE=1970-01-01T00:00:00Z ;; esac
MAINTAINER=${MAINTAINER:-$(git log -1 --format='%cn <%ce>' 2>/dev/null || echo unknown)}
# Packages need a number.
case $VERSION in [0-9]*) ;; *) VERSION=0.0.0-unknown ;; esac
SOURCE_DATE_EPOCH=$(date -u -d "$DATE" +%s)
export VERSION COMMIT BUILD_DATE DATE SOURCE_DATE_EPOCH GOWORK=off
ldflags=$("$here/ldflags.sh")
case " $FORMATS " in *" deb "*) command -v dpkg-deb >/dev/null || { echo "release.sh: a .deb needs dpkg-deb, from the package dpkg" >&2; exit 1; } ;; esac
case " $FORMATS " in *" rpm "*) nfpm=$("$go" tool -modfile=test/tools/go.mod -n nfpm) ;; esac
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
describe=$work/describe
CGO_ENABLED=0 "$go" build -buildvcs=false -o "$describe" ./deploy/release/describe

# make_deb and make_rpm write a package of $root.
make_deb() {
	mkdir "$root/DEBIAN"
	install -m 0755 "$here/postinstall.sh" "$root/DEBIAN/postinst"
	install -m 0755 "$here/preremove.sh" "$root/DEBIAN/prerm"
	echo /etc/hubcloud.env >"$root/DEBIAN/conffiles"
	# A version with a "~" sorts before the release.
	cat >"$root/DEBIAN/control" <<-CONTROL
		Package: hubcloud
		Version: $(echo "$VERSION" | sed 's/-/~/; s/-/./g')
		Architecture: $ARCH
		Maintainer: $MAINTAINER
		Installed-Size: $(du -sk --apparent-size --exclude=DEBIAN "$root" | cut -f1)
		Section: net
		Priority: optional
		Depends: ca-certificates, passwd
		Recommends: postgresql
		Description: Device-hub cloud: broker, database, API and portal
		 Hubs connect over MQTT; API clients list devices, send commands and follow events.
	CONTROL
	dpkg-deb --root-owner-group --uniform-compression -Zgzip "-z$LEVEL" --build "$root" "$out/$name.deb" >&2
	rm -r "$root/DEBIAN"
}
make_rpm() {
	sed -e "s|\${ARCH}|$ARCH|; s|\${VERSION}|$VERSION|; s|\${DATE}|$DATE|; s|\${MAINTAINER}|$MAINTAINER|" "$here/nfpm.yaml" >"$work/nfpm.yaml"
	find "$root" -type f -printf "  - {src: %p, dst: /%P, file_info: {mode: 0%m, mtime: \"$DATE\"}}\n" |
		sed 's|dst: /etc/|type: config\|noreplace, &|' | sort >>"$work/nfpm.yaml"
	# Folders of its own go when it is removed.
	(cd "$root" && find usr/share/doc/hubcloud usr/share/hubcloud -type d -printf "  - {dst: /%p, type: dir, file_info: {mode: 0755, mtime: \"$DATE\"}}\n") |
		sort >>"$work/nfpm.yaml"
	"$nfpm" package --config "$work/nfpm.yaml" --packager rpm --target "$out/$name.rpm" >&2
}

# What people read and start from, in the folders of the repository, so that its links work.
documents=$work/documents
mkdir "$documents"
tar -chf - --exclude='*_test.go' --exclude=testdata --exclude=node_modules --exclude=dist CHANGELOG.md LICENSE SECURITY.md \
	deploy/README.md deploy/docs deploy/compose deploy/grafana deploy/haproxy deploy/helm deploy/image deploy/prometheus deploy/systemd \
	httpapi/openapi.yaml httpapi/docs httpapi/client hubbridge/protocol hubbridge/kit/hub hubbridge/kit/node hubbridge/gateway \
	hubbridge/package.json hubbridge/package-lock.json | tar -xf - -C "$documents"
chmod -R go=rX,u+rw "$documents"

# In a release the Go client is a module of its own, which nothing comes with.
printf 'module hubcloud/httpapi/client\n\n%s\n' "$(grep '^go ' go.mod)" >"$documents/httpapi/client/go.mod"

# Completions and manual pages are what the program itself prints.
native=${PREBUILT:-$work/native}
[ -n "${PREBUILT:-}" ] || CGO_ENABLED=0 "$go" build -trimpath -buildvcs=false -ldflags "-s -w $ldflags" -o "$native" ./cmd/hubcloud
mkdir "$documents/man" "$documents/completions"
"$describe" man "$native" "$VERSION" "$DATE" "$documents/man"
gzip -n -9 "$documents"/man/*.1
for shell in bash zsh fish; do "$native" completion $shell >"$documents/completions/hubcloud.$shell"; done
find "$documents" -exec touch -d "@$SOURCE_DATE_EPOCH" {} +

for platform; do
	os=${platform%/*} ARCH=${platform#*/}
	name=hubcloud_${VERSION}_${os}_$ARCH
	stage=$work/$name
	mkdir "$stage"
	if [ -n "${PREBUILT:-}" ]; then
		cp "$PREBUILT" "$stage/hubcloud"
	else
		CGO_ENABLED=0 GOOS=$os GOARCH=$ARCH "$go" build -trimpath -buildvcs=false -ldflags "-s -w $ldflags" -o "$stage/hubcloud" ./cmd/hubcloud
	fi
	"$describe" cyclonedx "$stage/hubcloud" "$VERSION" "$DATE" >"$out/$name.cdx.json"
	"$describe" spdx "$stage/hubcloud" "$VERSION" "$DATE" >"$out/$name.spdx.json"
	if [ -n "${COPYRIGHT:-}" ]; then
		cp "$COPYRIGHT" "$stage/copyright"
	else
		GOOS=$os GOARCH=$ARCH "$here/licences.sh" "$stage/hubcloud" >"$stage/copyright"
	fi
	cp -Rp "$documents/." "$stage/"
	chmod 0755 "$stage/hubcloud"
	case " $FORMATS " in *" tar.gz "*)
		tar --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --mode=go=rX,u+rw -C "$work" -cf - "$name" |
			gzip -n "-$LEVEL" >"$out/$name.tar.gz"
		;;
	esac
	[ "$os" = linux ] || continue
	# What a package installs. The environment may contain passwords: only root can read it. The documents keep the folders that their links expect.
	root=$work/root
	rm -rf "$root"
	put() { install -D -m "$1" "$2" "$root$3"; }
	put 0755 "$stage/hubcloud" /usr/bin/hubcloud
	# The manual installation uses /usr/local/bin, packages /usr/bin.
	sed -e '/^#   /d; s/ To install it:$//' -e 's|^ExecStart=/usr/local/bin/|ExecStart=/usr/bin/|' deploy/systemd/hubcloud.service >"$work/unit"
	put 0644 "$work/unit" /usr/lib/systemd/system/hubcloud.service
	put 0644 deploy/systemd/low-ports.conf /usr/share/hubcloud/low-ports.conf
	put 0600 deploy/systemd/hubcloud.env /etc/hubcloud.env
	for page in "$documents"/man/*; do put 0644 "$page" "/usr/share/man/man1/${page##*/}"; done
	put 0644 "$documents/completions/hubcloud.bash" /usr/share/bash-completion/completions/hubcloud
	put 0644 "$documents/completions/hubcloud.zsh" /usr/share/zsh/vendor-completions/_hubcloud
	put 0644 "$documents/completions/hubcloud.fish" /usr/share/fish/vendor_completions.d/hubcloud.fish
	put 0644 "$stage/copyright" /usr/share/doc/hubcloud/copyright
	cp -Rp "$documents/." "$root/usr/share/doc/hubcloud/"
	rm -r "$root/usr/share/doc/hubcloud/man" "$root/usr/share/doc/hubcloud/completions" # they are in their own places
	find "$root" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
	for format in $FORMATS; do
		case $format in deb) make_deb ;; rpm) make_rpm ;; esac
	done
done
"$here/chart.sh" "$out" "$VERSION" >&2
case " $FORMATS " in *" npm "*)
	"$here/npm.sh" "$out"
	"$describe" cyclonedx hubbridge/package-lock.json "$VERSION" "$DATE" >"$out/hubcloud-npm.cdx.json"
	"$describe" spdx hubbridge/package-lock.json "$VERSION" "$DATE" >"$out/hubcloud-npm.spdx.json"
	;;
esac
(cd "$out" && sha256sum hubcloud[-_]* >SHA256SUMS)
"$describe" provenance "$out/SHA256SUMS" "$VERSION" "$DATE" "$COMMIT" >"$out/provenance.json"
(cd "$out" && sha256sum provenance.json >>SHA256SUMS)
if [ -n "${SIGNING_KEY:-}" ]; then
	"$("$go" tool -modfile=test/tools/go.mod -n minisign)" -S -s "$SIGNING_KEY" -t "hubcloud $VERSION" -m "$out/SHA256SUMS" >&2
fi
