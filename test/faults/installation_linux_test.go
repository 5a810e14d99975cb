package faults

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hubcloud/test/harness"
	"hubcloud/test/lossyfs"
)

// With --sync 2m a power cut right after the first start took the installation itself: the broker
// had synced nothing yet. A service that has said that it is ready has its installation on disk.
func TestPowerCutAfterTheInstallation(t *testing.T) {
	t.Parallel()
	disk := lossyfs.Mount(t, t.TempDir())
	s := harness.StartIn(t, filepath.Join(disk.Dir, "data"), "--sync", "2m")
	read := func() string {
		var all strings.Builder
		for _, name := range []string{
			"nats/installation.json", "nats-credentials.json", "ca/ca.pem", "ca/ca-key.pem",
			"replica-id",
		} {
			text, err := os.ReadFile(filepath.Join(s.Dir, filepath.FromSlash(name)))
			if err != nil {
				t.Fatal(err)
			}
			all.Write(text)
		}
		return all.String()
	}
	want := read()
	disk.CutPower(lossyfs.Everything, 1, s.KillAll, s.WaitGone)
	s.Begin()
	if got := read(); got != want {
		t.Errorf("after a power cut it is another installation:\n%s\nand was\n%s", got, want)
	}
}
