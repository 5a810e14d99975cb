package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"strings"
	"time"

	"hubcloud/cmd/hubcloud/internal/build"
	"hubcloud/cmd/hubcloud/internal/datadir"
)

// checkService checks whether a service runs on the data directory, and what its /readyz answers.
func checkService(ctx context.Context, t *target, f *findings) {
	if t.DataDir == "" {
		f.add(
			Skipped, "no data directory is known here",
			"name that of a service on this machine with --data-dir to check it",
		)
		return
	}
	if !t.running() {
		notRunning(t, f)
		return
	}
	ready, err := askReady(ctx, t.Bound.Admin)
	if err != nil {
		notAnswering(t, f, err)
		return
	}
	f.note("runs%s, and answers at %s", since(t.Started), t.Bound.HTTP)
	if t.Bound.HTTP == "" {
		f.details[0] = fmt.Sprintf("runs%s, without the API", since(t.Started))
	}
	checkVersion(t.Started, build.Current(), f)
	for _, c := range ready.Components {
		switch {
		case c.Degraded:
			f.add(Warning, fmt.Sprintf("it serves, but %s: %s", c.Name, c.Detail), c.Action)
		case !c.OK:
			f.add(Wrong, fmt.Sprintf("it is not ready: %s: %s", c.Name, c.Detail), c.Action)
		}
	}
	switch {
	case ready.Ready && f.verdict == OK:
		f.note("it is ready")
	case !ready.Ready && f.verdict == OK:
		f.add(Wrong, "it is not ready", "")
	}
	if f.verdict != OK && len(f.advice) == 0 {
		f.advice = append(f.advice, "see the components below and the service's log")
	}
	if t.StartedErr != nil {
		f.add(
			Warning, fmt.Sprintf("service.json cannot be read: %v", t.StartedErr),
			"run the doctor as the user of the service; a start of the service replaces the file",
		)
	}
}

// checkVersion compares the version of the running service with that of this program.
func checkVersion(running *datadir.Started, program build.Info, f *findings) {
	if running == nil || running.Version == "" {
		return
	}
	f.note("version %s", running.Version)
	if running.Version == program.Version && running.Commit == program.Commit {
		return
	}
	f.add(
		Warning,
		fmt.Sprintf("this program is version %s (commit %s)", program.Version, program.Commit),
		"if the program was just replaced, restart the service; otherwise use the service's own",
	)
}

// notRunning reports a service without endpoints.json.
func notRunning(t *target, f *findings) {
	if _, err := os.Stat(t.DataDir); errors.Is(err, fs.ErrNotExist) {
		f.add(
			Wrong, fmt.Sprintf("there is no data directory %s", t.DataDir),
			"name the service's with --data-dir, or the broker with --nats-url and "+
				"--nats-credentials",
		)
		return
	}
	if lockHeld(t.path("LOCK")) {
		f.add(
			Warning,
			"a service uses the data directory and is starting or stopping"+since(t.Started),
			"try again in a minute; the service's log shows what a longer start waits for",
		)
		return
	}
	f.add(
		Wrong,
		fmt.Sprintf("no service runs on %s%s", t.DataDir, lastStarted(t.Started)),
		fmt.Sprintf(
			"start it: hubcloud serve --data-dir %s; the log of the last one shows why it ended",
			t.DataDir,
		),
	)
}

// notAnswering reports a service that has endpoints.json and does not answer.
func notAnswering(t *target, f *findings, err error) {
	if lockHeld(t.path("LOCK")) {
		f.add(
			Wrong,
			fmt.Sprintf(
				"the service uses the data directory and does not answer at %s: %v", t.Bound.Admin,
				err,
			),
			"see its log; if the service hangs, end it with kill -QUIT, which prints its "+
				"goroutines to the log, and start it again",
		)
		return
	}
	f.add(
		Wrong,
		fmt.Sprintf(
			"the service was killed: endpoints.json exists and nothing answers at %s: %v",
			t.Bound.Admin, err,
		),
		fmt.Sprintf(
			"start it again: hubcloud serve --data-dir %s; the kernel's log (dmesg) shows "+
				"whether memory ran out",
			t.DataDir,
		),
	)
}

// readiness is the body of /readyz.
type readiness struct {
	Ready      bool `json:"ready"`
	Components []struct {
		Name     string `json:"name"`
		OK       bool   `json:"ok"`
		Degraded bool   `json:"degraded"`
		Detail   string `json:"detail"`
		Action   string `json:"action"`
	} `json:"components"`
}

// askReady requests /readyz at the admin address.
func askReady(ctx context.Context, admin string) (readiness, error) {
	var body readiness
	response, err := get(ctx, "http://"+admin+"/readyz")
	if err != nil {
		return body, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK &&
		response.StatusCode != http.StatusServiceUnavailable {
		return body, fmt.Errorf("status %d", response.StatusCode)
	}
	if err := json.NewDecoder(response.Body).Decode(&body); err != nil {
		return body, fmt.Errorf("invalid response: %w", err)
	}
	return body, nil
}

// since describes the running process, "" if unknown.
func since(s *datadir.Started) string {
	if s == nil {
		return ""
	}
	return fmt.Sprintf(
		" (process %d, %s, for %s)", s.PID, strings.Join(s.Roles, " "), ago(time.Since(s.At)),
	)
}

// lastStarted describes the last start, "" if unknown.
func lastStarted(s *datadir.Started) string {
	if s == nil {
		return ""
	}
	return fmt.Sprintf("; the last one was started %s ago", ago(time.Since(s.At)))
}
