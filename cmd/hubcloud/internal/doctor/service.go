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

	"hubcloud/cmd/hubcloud/internal/datadir"
)

// checkService says whether a service runs on this machine's data directory, and what it says of
// itself.
func checkService(ctx context.Context, p *patient, f *findings) {
	if p.DataDir == "" {
		f.add(
			Skipped, "there is no data directory here",
			"name that of a service on this machine with --data-dir to have it looked at, too",
		)
		return
	}
	if !p.running() {
		notRunning(p, f)
		return
	}
	ready, err := askReady(ctx, p.Bound.Admin)
	if err != nil {
		notAnswering(p, f, err)
		return
	}
	f.note("runs%s, and answers at %s", since(p.Started), p.Bound.HTTP)
	if p.Bound.HTTP == "" {
		f.details[0] = fmt.Sprintf("runs%s, without the API", since(p.Started))
	}
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
		f.note("it says that it is ready")
	case !ready.Ready && f.verdict == OK:
		f.add(Wrong, "it says that it is not ready", "")
	}
	if f.verdict != OK && len(f.advice) == 0 {
		f.advice = append(f.advice, "see the components below, and the service's log")
	}
	if p.StartedErr != nil {
		f.add(
			Warning, fmt.Sprintf("how it was started cannot be read: %v", p.StartedErr),
			"ask as the user whom the service runs as; a start writes the file anew",
		)
	}
}

// notRunning says what is known of a service that has not written where it listens.
func notRunning(p *patient, f *findings) {
	if _, err := os.Stat(p.DataDir); errors.Is(err, fs.ErrNotExist) {
		f.add(
			Wrong, fmt.Sprintf("there is no data directory %s", p.DataDir),
			"name the service's with --data-dir, or the broker with --nats-url and --nats-credentials",
		)
		return
	}
	if lockHeld(p.path("LOCK")) {
		f.add(
			Warning,
			"a service has the data directory and is not ready yet, or stops"+since(p.Started),
			"ask again in a minute; a start that takes longer says in the service's log what it waits for",
		)
		return
	}
	f.add(
		Wrong,
		fmt.Sprintf("no service runs on %s%s", p.DataDir, lastStarted(p.Started)),
		fmt.Sprintf(
			"start it: hubcloud serve --data-dir %s; why the last one ended is in its log",
			p.DataDir,
		),
	)
}

// notAnswering says what is known of a service that has written where it listens, and does not
// answer there.
func notAnswering(p *patient, f *findings, err error) {
	if lockHeld(p.path("LOCK")) {
		f.add(
			Wrong,
			fmt.Sprintf(
				"the service has the data directory and does not answer at %s: %v", p.Bound.Admin,
				err,
			),
			"see its log; if it hangs, keep what its goroutines do (kill -QUIT prints that into "+
				"the log and ends it), and start it again",
		)
		return
	}
	f.add(
		Wrong,
		fmt.Sprintf(
			"the service was killed: endpoints.json is there and nobody answers at %s: %v",
			p.Bound.Admin, err,
		),
		fmt.Sprintf(
			"start it again: hubcloud serve --data-dir %s; the kernel's log says whether memory ran out (dmesg)",
			p.DataDir,
		),
	)
}

// readiness is what the service says of itself.
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

func askReady(ctx context.Context, admin string) (readiness, error) {
	var said readiness
	response, err := get(ctx, "http://"+admin+"/readyz")
	if err != nil {
		return said, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK &&
		response.StatusCode != http.StatusServiceUnavailable {
		return said, fmt.Errorf("status %d", response.StatusCode)
	}
	if err := json.NewDecoder(response.Body).Decode(&said); err != nil {
		return said, fmt.Errorf("unreadable answer: %w", err)
	}
	return said, nil
}

func since(s *datadir.Started) string {
	if s == nil {
		return ""
	}
	return fmt.Sprintf(
		" (process %d, %s, for %s)", s.PID, strings.Join(s.Roles, " "), ago(time.Since(s.At)),
	)
}

func lastStarted(s *datadir.Started) string {
	if s == nil {
		return ""
	}
	return fmt.Sprintf("; the last one was started %s ago", ago(time.Since(s.At)))
}
