package deploy

import (
	"bytes"
	"context"
	"debug/buildinfo"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"testing"
	"time"

	"hubcloud/streams/streamstest"
	"hubcloud/test/harness"
)

// TestPackageIsInstalled builds the .deb from the binary under test. On a copy of this machine it
// installs the package, starts the service as the unit does, upgrades to the same package with a
// higher version, and removes and purges it.
func TestPackageIsInstalled(t *testing.T) {
	t.Parallel()
	if runtime.GOARCH != "amd64" || os.Getuid() != 0 {
		t.Skip("NOT TRIED: needs root on linux/amd64")
	}
	for _, program := range []string{"dpkg", "dpkg-deb", "unshare", "setpriv", "chroot"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("NOT TRIED: needs %s", program)
		}
	}
	if out, err := exec.Command("unshare", "--mount", "--pid", "--fork", "true").
		CombinedOutput(); err != nil {
		t.Skipf("NOT TRIED: no mounts of its own here: %s", out)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute) // for a busy machine
	defer cancel()
	licences := copyright(ctx, t)
	public, secret := signingKey(t)
	dir := t.TempDir()
	release := exec.CommandContext(ctx, "../../deploy/release/release.sh", dir, "linux/amd64")
	release.Env = append(
		os.Environ(), "VERSION=9.0.0", "FORMATS=deb", "LEVEL=1", "PREBUILT="+harness.Binary(t),
		"COPYRIGHT="+licences, "SIGNING_KEY="+secret,
	)
	release.WaitDelay = time.Second
	if out, err := release.CombinedOutput(); err != nil {
		t.Fatalf("release.sh: %v: %s", err, out)
	}
	verify := exec.CommandContext(
		ctx, "sh", "-c", minisign+` -V -p "$1" -m "$2/SHA256SUMS" && cd "$2" && sha256sum -c SHA256SUMS`,
		"sh", public, dir,
	)
	if out, err := verify.CombinedOutput(); err != nil ||
		!bytes.Contains(out, []byte("provenance.json: OK")) {
		t.Errorf("checksums and signature: %v: %s", err, out)
	}
	first, second := filepath.Join(dir, "hubcloud_9.0.0_linux_amd64.deb"), filepath.Join(dir, "second.deb")
	root := filepath.Join(dir, "package")
	checkDocuments(t, first, root)
	useGoClient(t, filepath.Join(root, "usr/share/doc/hubcloud/httpapi/client"))
	again := exec.CommandContext(
		ctx, "sh", "-ec", `sed -i 's/^Version: 9.0.0$/Version: 9.0.1/' "$1/DEBIAN/control"
			dpkg-deb -Znone --build "$1" "$2"`, "sh", root, second,
	)
	if out, err := again.CombinedOutput(); err != nil {
		t.Fatalf("dpkg-deb: %v: %s", err, out)
	}
	install := exec.CommandContext(
		ctx, "unshare", "--mount", "--pid", "--fork", "--kill-child", "testdata/install.sh",
		t.TempDir(), first, second,
	)
	install.Env = append(
		os.Environ(), "HTTP="+streamstest.FreeAddress(t), "MQTT="+streamstest.FreeAddress(t),
		"NATS="+streamstest.FreeAddress(t), "ADMIN="+streamstest.FreeAddress(t),
	)
	install.WaitDelay = time.Second
	out, err := install.CombinedOutput()
	if failed, ok := errors.AsType[*exec.ExitError](err); ok && failed.ExitCode() == 77 {
		t.Skipf("NOT TRIED: no overlay of the file system here: %s", out)
	}
	if err != nil {
		t.Fatalf("install.sh: %v\n%s", err, out)
	}
}

// useGoClient compiles a program that uses the Go client of a release, by the two lines that the client's
// documentation names. Nothing is downloaded.
func useGoClient(t *testing.T, folder string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(folder, "doc.go"))
	harness.Must(t, err)
	lines := regexp.MustCompile(
		`//\t(go mod edit -replace \S+=)\S+/httpapi/client\n//\t(go get \S+)\n`,
	).FindSubmatch(text)
	if lines == nil {
		t.Fatal("doc.go does not name the two lines by which a module uses the client")
	}
	use := exec.CommandContext(t.Context(), "sh", "-ec", `go mod init example.com/stranger
		`+string(lines[1])+`"$1"
		`+string(lines[2])+`
		printf 'package main\nimport "hubcloud/httpapi/client"\nfunc main() { client.New(client.Config{}) }\n' >main.go
		go mod tidy
		go build .`, "sh", folder)
	use.Dir = t.TempDir()
	use.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=", "GOPROXY=off")
	if out, err := use.CombinedOutput(); err != nil {
		t.Errorf("a module that uses the client: %v\n%s", err, out)
	}
}

var relativeLink = regexp.MustCompile(`\]\(([^)\s#:]+)(?:#[^)]*)?\)`)

// minisign runs the pinned tool.
const minisign = `"$(GOWORK=off go tool -modfile=../../test/tools/go.mod -n minisign)"`

// signingKey returns the files of a new pair of keys.
func signingKey(t *testing.T) (public, secret string) {
	t.Helper()
	public, secret = filepath.Join(t.TempDir(), "public"), filepath.Join(t.TempDir(), "secret")
	if out, err := exec.Command(
		"sh", "-c", minisign+` -G -W -p "$1" -s "$2"`, "sh", public, secret,
	).CombinedOutput(); err != nil {
		t.Fatalf("minisign: %v: %s", err, out)
	}
	return public, secret
}

// checkDocuments unpacks a .deb into a folder, and checks that its pages link to its files.
func checkDocuments(t *testing.T, path, root string) {
	t.Helper()
	if out, err := exec.Command("dpkg-deb", "--raw-extract", path, root).CombinedOutput(); err != nil {
		t.Fatalf("dpkg: %v: %s", err, out)
	}
	links := 0
	if err := filepath.WalkDir(filepath.Join(root, "usr/share/doc/hubcloud"), func(
		page string, _ fs.DirEntry, err error,
	) error {
		if err != nil || filepath.Ext(page) != ".md" {
			return err
		}
		text, err := os.ReadFile(page)
		for _, link := range relativeLink.FindAllSubmatch(text, -1) {
			links++
			if _, err := os.Stat(filepath.Join(filepath.Dir(page), string(link[1]))); err != nil {
				t.Errorf("%s links to %s: %v", filepath.Base(page), link[1], err)
			}
		}
		return err
	}); err != nil || links < 50 {
		t.Errorf("pages of the package: %v, %d links", err, links)
	}
}

// copyright returns the file of licences that a release of the binary under test contains, after it
// has checked that each module of the binary has a section.
func copyright(ctx context.Context, t *testing.T) string {
	t.Helper()
	print := exec.CommandContext(ctx, "../../deploy/release/licences.sh", harness.Binary(t))
	print.WaitDelay = time.Second
	var problems bytes.Buffer
	print.Stderr = &problems
	text, err := print.Output()
	if err != nil {
		t.Fatalf("licences.sh: %v: %s", err, problems.Bytes())
	}
	info, err := buildinfo.ReadFile(harness.Binary(t))
	if err != nil || len(info.Deps) < 40 {
		t.Fatalf("the binary names %d modules, %v", len(info.Deps), err)
	}
	for _, module := range info.Deps {
		if title := module.Path + " " + module.Version; !bytes.Contains(
			text, []byte("\n"+title+"\n==="),
		) {
			t.Errorf("licences.sh: no section %q", title)
		}
	}
	if title := "uPlot, in the portal's pages"; !bytes.Contains(text, []byte("\n"+title+"\n===")) {
		t.Errorf("licences.sh: no section %q", title)
	}
	path := filepath.Join(t.TempDir(), "copyright")
	harness.Must(t, os.WriteFile(path, text, 0o600))
	return path
}
