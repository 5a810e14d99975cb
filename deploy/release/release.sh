#!/bin/sh
# Builds a release reproducibly: two builds of a commit have the same checksums.
#
#   deploy/release/release.sh DIR linux/amd64 darwin/arm64 …
#
# DIR gets, for each platform, an archive with the static binary, the documents and examples, and SBOMs (CycloneDX, SPDX); for Linux also a .deb
# and a .rpm. provenance.json says how they were built (in-toto, SLSA), and SHA256SUMS has the checksums of all. With SIGNING_KEY, the file of a
# minisign key, SHA256SUMS.minisig is its signature.
#
# FORMATS names what to make of tar.gz, deb and rpm; by default all. PREBUILT is a binary for all platforms to take in place of a build, and
# COPYRIGHT a file with the licences of what it contains. MAINTAINER is who answers for the packages, by default whoever committed last.
set -eu
FORMATS=${FORMATS:-tar.gz deb rpm}
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
out=$(cd "$1" && pwd)
shift
cd "$here/../.."
go=${GO:-go}
rm -f "$out"/hubcloud_* "$out"/SHA256SUMS* "$out"/provenance.json

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
nfpm=$("$go" tool -modfile=test/tools/go.mod -n nfpm)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
describe=$work/describe
CGO_ENABLED=0 "$go" build -buildvcs=false -o "$describe" ./deploy/release/describe

# What people read and start from, in the folders of the repository, so that its links work.
documents=$work/documents
mkdir "$documents"
tar -cf - --exclude='*_test.go' --exclude=testdata --exclude=node_modules --exclude=dist CHANGELOG.md LICENSE SECURITY.md \
	deploy/README.md deploy/docs deploy/compose deploy/grafana deploy/haproxy deploy/image deploy/kubernetes deploy/prometheus deploy/systemd \
	httpapi/openapi.yaml httpapi/docs httpapi/client hubbridge/protocol hubbridge/kit/hub hubbridge/kit/node hubbridge/gateway | tar -xf - -C "$documents"
chmod -R go=rX,u+rw "$documents"

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
	STAGE=$work/$name
	export ARCH STAGE
	mkdir "$STAGE"
	if [ -n "${PREBUILT:-}" ]; then
		cp "$PREBUILT" "$STAGE/hubcloud"
	else
		CGO_ENABLED=0 GOOS=$os GOARCH=$ARCH "$go" build -trimpath -buildvcs=false -ldflags "-s -w $ldflags" -o "$STAGE/hubcloud" ./cmd/hubcloud
	fi
	"$describe" cyclonedx "$STAGE/hubcloud" "$VERSION" "$DATE" >"$out/$name.cdx.json"
	"$describe" spdx "$STAGE/hubcloud" "$VERSION" "$DATE" >"$out/$name.spdx.json"
	if [ -n "${COPYRIGHT:-}" ]; then
		cp "$COPYRIGHT" "$STAGE/copyright"
	else
		GOOS=$os GOARCH=$ARCH "$here/licences.sh" "$STAGE/hubcloud" >"$STAGE/copyright"
	fi
	cp -Rp "$documents/." "$STAGE/"
	chmod 0755 "$STAGE/hubcloud"
	case " $FORMATS " in *" tar.gz "*)
		tar --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --mode=go=rX,u+rw -C "$work" -cf - "$name" |
			gzip -n -9 >"$out/$name.tar.gz"
		;;
	esac
	[ "$os" = linux ] || continue
	# The manual installation uses /usr/local/bin, packages /usr/bin.
	sed -e '/^#   /d; s/ To install it:$//' -e 's|^ExecStart=/usr/local/bin/|ExecStart=/usr/bin/|' deploy/systemd/hubcloud.service >"$STAGE/hubcloud.service"
	cp deploy/systemd/low-ports.conf deploy/systemd/hubcloud.env "$STAGE/"
	sed -e "s|\${STAGE}|$STAGE|; s|\${DOCUMENTS}|$documents|; s|\${ARCH}|$ARCH|; s|\${VERSION}|$VERSION|; s|\${DATE}|$DATE|g; s|\${MAINTAINER}|$MAINTAINER|" "$here/nfpm.yaml" >"$STAGE/nfpm.yaml"
	for format in $FORMATS; do
		[ "$format" != tar.gz ] || continue
		"$nfpm" package --config "$STAGE/nfpm.yaml" --packager "$format" --target "$out/$name.$format" >&2
	done
done
(cd "$out" && sha256sum hubcloud_* >SHA256SUMS)
"$describe" provenance "$out/SHA256SUMS" "$VERSION" "$DATE" "$COMMIT" >"$out/provenance.json"
(cd "$out" && sha256sum provenance.json >>SHA256SUMS)
if [ -n "${SIGNING_KEY:-}" ]; then
	"$("$go" tool -modfile=test/tools/go.mod -n minisign)" -S -s "$SIGNING_KEY" -t "hubcloud $VERSION" -m "$out/SHA256SUMS" >&2
fi
