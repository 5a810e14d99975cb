package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"hubcloud/streams/streamstest"
)

// TestPackageCreatesUserAndDataDirectory runs the packages' script twice, as an installation and an
// upgrade do, in a folder in place of the system.
func TestPackageCreatesUserAndDataDirectory(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("useradd"); err != nil || os.Getuid() != 0 {
		t.Skip("NOT TRIED: needs root and useradd")
	}
	root := t.TempDir()
	streamstest.Must(t, os.MkdirAll(filepath.Join(root, "etc"), 0o755))
	for _, name := range []string{"passwd", "group", "shadow", "gshadow"} {
		streamstest.Must(t, os.WriteFile(filepath.Join(root, "etc", name), nil, 0o600))
	}
	for _, run := range []string{"installation", "upgrade"} {
		command := exec.Command("sh", "../../deploy/release/postinstall.sh", "configure")
		command.Env = append(os.Environ(), "DPKG_ROOT="+root)
		if out, err := command.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", run, err, out)
		}
	}
	users, err := os.ReadFile(filepath.Join(root, "etc/passwd"))
	if err != nil || strings.Count("\n"+string(users), "\nhubcloud:") != 1 ||
		!strings.Contains(string(users), ":/var/lib/hubcloud:/usr/sbin/nologin") {
		t.Errorf("passwd: got %q, %v, want the user hubcloud without a login", users, err)
	}
	info, err := os.Stat(filepath.Join(root, "var/lib/hubcloud"))
	if err != nil || info.Mode().Perm() != 0o750 {
		t.Errorf("data directory: got %v, %v, want mode 0750", info, err)
	}
}
