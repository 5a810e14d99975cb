package deploy

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"hubcloud/streams/streamstest"
	"hubcloud/test/harness"
)

// TestPackageIsInstalled builds two versions of the .deb from the binary under test. On a copy of
// this machine it installs one, starts the service as the unit does, and upgrades, removes and
// purges the package.
func TestPackageIsInstalled(t *testing.T) {
	t.Parallel()
	if runtime.GOARCH != "amd64" || os.Getuid() != 0 {
		t.Skip("NOT TRIED: needs root on linux/amd64")
	}
	for _, program := range []string{"dpkg", "unshare", "setpriv", "chroot"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("NOT TRIED: needs %s", program)
		}
	}
	if out, err := exec.Command("unshare", "--mount", "--pid", "--fork", "true").
		CombinedOutput(); err != nil {
		t.Skipf("NOT TRIED: no mounts of its own here: %s", out)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	var packages []string
	for _, version := range []string{"9.0.0", "9.0.1"} {
		dir := t.TempDir()
		release := exec.CommandContext(ctx, "../../deploy/release/release.sh", dir, "linux/amd64")
		release.Env = append(
			os.Environ(), "VERSION="+version, "FORMATS=deb", "PREBUILT="+harness.Binary(t),
		)
		release.WaitDelay = time.Second
		if out, err := release.CombinedOutput(); err != nil {
			t.Fatalf("release.sh: %v: %s", err, out)
		}
		packages = append(
			packages, filepath.Join(dir, "hubcloud_"+version+"_linux_amd64.deb"),
		)
	}
	install := exec.CommandContext(
		ctx, "unshare", "--mount", "--pid", "--fork", "--kill-child", "testdata/install.sh",
		t.TempDir(), packages[0], packages[1],
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
