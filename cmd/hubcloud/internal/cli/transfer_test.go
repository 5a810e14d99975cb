package cli

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"hubcloud/streams/backup"
)

// A transfer shows a bar on a terminal, lines elsewhere, and nothing beside JSON.
func TestTransfer(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		terminal, quiet bool
		want            string
	}{
		"terminal": {
			true, false,
			"\r\x1b[Kbackup [###############...............]  50 %  1.5 MB of 3.0 MB  11s left  " +
				"DIRECTORY\r\x1b[K",
		},
		"elsewhere": {false, false, "backup:  50 %  1.5 MB of 3.0 MB  11s left  DIRECTORY\n"},
		"json":      {true, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var out strings.Builder
				bar := newTransfer(&out, "backup", c.quiet)
				bar.terminal = c.terminal
				bar.report(backup.Progress{Step: "too soon to be shown", Total: 3_000_000})
				time.Sleep(10 * time.Second)
				bar.report(backup.Progress{Step: "DIRECTORY", Done: 1_500_000, Total: 3_000_000})
				bar.report(
					backup.Progress{Step: "too soon after that", Done: 1_600_000, Total: 3_000_000},
				)
				bar.end()
				if got := out.String(); got != c.want {
					t.Errorf("printed %q, want %q", got, c.want)
				}
			})
		})
	}
}
