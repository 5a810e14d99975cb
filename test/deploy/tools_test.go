package deploy

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hubcloud/streams/streamstest"
)

// TestRulesWithPromtool runs the commands of the runbook that test the alerts, where Prometheus is
// installed.
func TestRulesWithPromtool(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("promtool"); err != nil {
		t.Skip("NOT TRIED: needs promtool, which comes with Prometheus")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for _, args := range [][]string{
		{"check", "rules", "hubcloud.rules.yaml"}, {"test", "rules", "hubcloud.rules.test.yaml"},
	} {
		run := exec.CommandContext(ctx, "promtool", args...)
		run.Dir = "../../deploy/prometheus"
		if out, err := run.CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}

// TestVulnerabilitiesFailTheCheck runs vuln.sh with a program in place of govulncheck: what that
// finds fails the check, and only a database out of reach does not.
func TestVulnerabilitiesFailTheCheck(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		program, says string
		code          int
	}{
		"clean": {
			`case "$*" in *-version) echo "DB updated: 2026-01-01" ;; esac`, "", 0,
		},
		"vulnerable": {
			`case "$*" in *-version) echo "DB updated: 2026-01-01" ;; *) exit 3 ;; esac`, "", 3,
		},
		"another failure": {
			`case "$*" in *-version) echo "DB updated: 2026-01-01" ;; *) exit 1 ;; esac`, "", 1,
		},
		"unreachable": {`exit 1`, "vuln: NOT TRIED: the database ", 0},
	} {
		program := filepath.Join(t.TempDir(), "govulncheck")
		streamstest.Must(t, os.WriteFile(program, []byte("#!/bin/sh\n"+c.program+"\n"), 0o755))
		run := exec.Command("sh", "../tools/vuln.sh", program)
		out, _ := run.CombinedOutput()
		if code := run.ProcessState.ExitCode(); code != c.code ||
			!strings.HasPrefix(string(out), c.says) {
			t.Errorf("%s: got exit code %d: %q, want %d and %q", name, code, out, c.code, c.says)
		}
	}
}
