package faults

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hubcloud/test/harness"
	"hubcloud/test/lossyfs"
)

// TestPowerCutAfterTheInstallation cuts the power right after the first start. Regression: with
// --sync 2m the broker had synced nothing yet, and the installation was lost. The installation must
// be on disk once the service is ready.
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
			harness.Must(t, err)
			all.Write(text)
		}
		return all.String()
	}
	want := read()
	disk.CutPower(lossyfs.Everything, 1, s.KillAll, s.WaitGone)
	s.Begin()
	if got := read(); got != want {
		t.Errorf("installation after the power cut: got\n%s\nwant\n%s", got, want)
	}
}
