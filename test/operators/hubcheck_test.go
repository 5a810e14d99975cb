package operators

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"hubcloud/hubbridge/kit/hub"
	"hubcloud/hubbridge/kit/virtualhub"
	"hubcloud/test/harness"
)

// TestHubCheck runs `hubcloud hub check` for some lines, on a right hub and on one that will not be
// commanded.
func TestHubCheck(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		faults    virtualhub.Faults
		code      int
		notPassed []string
	}{
		"right": {},
		"wrong": {
			faults: virtualhub.Faults{RejectCommands: true},
			code:   1, notPassed: []string{"channels.command"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			junit := filepath.Join(t.TempDir(), "report.xml")
			checked, code := runHubCheck(t, c.faults, "--junit", junit)
			if code != c.code {
				t.Errorf("exit code %d, want %d", code, c.code)
			}
			var notPassed []string
			for _, line := range checked {
				if line.Status == "passed" {
					continue
				}
				notPassed = append(notPassed, line.Line)
				if line.Detail == "" || line.Sentence == "" || line.OK {
					t.Errorf("line %+v, want a detail, a sentence and not ok", line)
				}
			}
			if len(checked) != 3 || !slices.Equal(notPassed, c.notPassed) {
				t.Errorf("checked %+v, want 3 lines, all but %q passed", checked, c.notPassed)
			}
			checkJUnit(t, junit, len(c.notPassed))
		})
	}
}

// checkedLine is a line as `hubcloud hub check --json` prints it.
type checkedLine struct {
	Line, Status, Detail, Sentence string
	OK                             bool
}

// runHubCheck checks a virtual hub and returns the lines and the exit code.
func runHubCheck(
	t *testing.T, faults virtualhub.Faults, flags ...string,
) (checked []checkedLine, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, harness.Binary(t), append([]string{
		"hub", "check", "--json", "--timeout", "90s",
		"--only", "enrols,devices.list,channels.command",
	}, flags...)...)
	var stderr bytes.Buffer
	command.Stderr = &stderr
	stdout, err := command.StdoutPipe()
	harness.Must(t, err)
	harness.Must(t, command.Start())
	lines := bufio.NewScanner(stdout)
	lines.Scan()
	var address struct{ Enroll, Serial, Secret string }
	if err := json.Unmarshal(lines.Bytes(), &address); err != nil {
		t.Fatalf("printed %q: %v; %s", lines.Text(), err, stderr.String())
	}
	hub, err := virtualhub.New(virtualhub.Config{
		Config: hub.Config{
			EnrollURL: address.Enroll, Serial: address.Serial, Secret: address.Secret,
			Logger: slog.New(slog.DiscardHandler),
		},
		Quiet: true, Faults: faults,
	})
	harness.Must(t, err)
	ended := make(chan error, 1)
	go func() { ended <- hub.Run(ctx) }()
	for lines.Scan() {
		var line checkedLine
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Errorf("printed %q: %v", lines.Text(), err)
		}
		checked = append(checked, line)
	}
	_ = command.Wait() // the exit code is what counts
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	return checked, command.ProcessState.ExitCode()
}

// checkJUnit checks a JUnit report of 3 lines.
func checkJUnit(t *testing.T, file string, failures int) {
	t.Helper()
	text, err := os.ReadFile(file)
	harness.Must(t, err)
	var suite struct {
		Tests    int `xml:"tests,attr"`
		Failures int `xml:"failures,attr"`
		Cases    []struct {
			Name    string  `xml:"name,attr"`
			Failure *string `xml:"failure"`
		} `xml:"testcase"`
	}
	if err := xml.Unmarshal(text, &suite); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	failed := 0
	for _, c := range suite.Cases {
		if c.Failure != nil {
			failed++
		}
	}
	if suite.Tests != 3 || len(suite.Cases) != 3 || suite.Failures != failures ||
		failed != failures {
		t.Errorf("JUnit report %s, want 3 tests and %d failures", text, failures)
	}
}
