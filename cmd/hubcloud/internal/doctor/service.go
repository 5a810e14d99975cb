package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"hubcloud/cmd/hubcloud/internal/installation"
)

// checkService checks whether a service runs on the data directory, or at the admin address, and
// answers.
func checkService(_ context.Context, t *target, f *findings) {
	if t.DataDir == "" && !t.running() {
		f.skip("no data directory is known here").todo(
			"name the directory of a service on this machine with --data-dir, or the --admin address of " +
				"one elsewhere with --admin",
		)
		return
	}
	if !t.running() {
		notRunning(t, f)
		return
	}
	if _, err := t.answer(); err != nil {
		notAnswering(t, f, err)
		return
	}
	switch {
	case t.DataDir == "":
		f.note("answers at %s", t.Bound.Admin)
	case t.Bound.HTTP == "":
		f.note("runs%s, without the API", since(t.Started))
	default:
		f.note("runs%s, and answers at %s", since(t.Started), t.Bound.HTTP)
	}
	checkVersion(t.Started, installation.Program(), f)
	if t.StartedErr != nil {
		f.warn("service.json cannot be read: %v", t.StartedErr).todo(
			"run the doctor as the user of the service; a start of the service replaces the file",
		)
	}
}

// checkVersion compares the versions of the running service and of this program.
func checkVersion(running *installation.Started, program installation.ProgramInfo, f *findings) {
	if running == nil || running.Version == "" {
		return
	}
	if running.Version != installation.Unknown { // of a program that was built by hand
		f.note("version %s", running.Version)
	}
	if running.Version == program.Version && running.Commit == program.Commit {
		return
	}
	f.warn("this program is version %s (commit %s)", program.Version, program.Commit).todo(
		"if the program was just replaced, restart the service; otherwise use the service's own",
	)
}

// notRunning reports a service without endpoints.json.
func notRunning(t *target, f *findings) {
	if _, err := os.Stat(t.DataDir); errors.Is(err, fs.ErrNotExist) {
		f.wrong("there is no data directory %s", t.DataDir).todo(
			"name the service's with --data-dir, or the broker with --nats-url and " +
				"--nats-credentials",
		)
		return
	}
	if lockHeld(t.path("LOCK")) {
		f.warn(
			"a service uses the data directory and is starting or stopping%s", since(t.Started),
		).todo("try again in a minute; the service's log shows what a longer start waits for")
		return
	}
	advice := fmt.Sprintf("start it: hubcloud serve --data-dir %s", t.DataDir)
	if t.Started != nil && t.Started.Error != "" {
		advice = "correct that, and start it again; its log has more"
	} else if t.Started != nil && t.Started.EndedAt.IsZero() {
		advice += "; the log of the last one shows why it ended"
	}
	f.wrong("no service runs on %s%s", t.DataDir, lastEnd(t.Started)).todo(advice)
	checkOwners(t, f)
}

// checkOwners reports files of the data directory that the service may not be able to write,
// because they belong to another user than the one that it last ran as.
func checkOwners(t *target, f *findings) {
	if t.Started == nil || t.Started.UID == 0 {
		return
	}
	paths := []string{t.DataDir}
	entries, _ := os.ReadDir(t.DataDir) // what cannot be listed is not checked
	for _, entry := range entries {
		probe, _ := filepath.Match(probeFile, entry.Name()) // of a check that runs meanwhile
		if entry.Name() != "postgres" && !probe {           // postgres may have a user of its own
			paths = append(paths, t.path(entry.Name()))
		}
	}
	for _, path := range paths {
		info, err := os.Lstat(path)
		if err != nil {
			continue
		}
		owner, ok := info.Sys().(*syscall.Stat_t)
		if !ok || int(owner.Uid) == t.Started.UID {
			continue
		}
		f.wrong(
			"%s belongs to %s, and the service last ran as %s",
			path, userName(int(owner.Uid)), userName(t.Started.UID),
		).todo(
			fmt.Sprintf(
				"start the service as the same user as before, or: chown -R %s %s, and leave postgres/ to "+
					"its owner", userName(t.Started.UID), t.DataDir,
			),
		)
		return
	}
}

// userName returns the name of a user, or its number.
func userName(uid int) string {
	id := strconv.Itoa(uid)
	if known, err := user.LookupId(id); err == nil {
		return known.Username
	}
	return id
}

// notAnswering reports a service that has endpoints.json and does not answer.
func notAnswering(t *target, f *findings, err error) {
	if t.DataDir == "" {
		f.wrong("no service answers at %s: %v", t.Bound.Admin, err).todo(
			"check whether it runs there, and whether its --admin address can be reached from here",
		)
		return
	}
	if lockHeld(t.path("LOCK")) {
		f.wrong(
			"the service uses the data directory and does not answer at %s: %v", t.Bound.Admin, err,
		).todo(
			"see its log; if the service hangs, end it with kill -QUIT, which prints its " +
				"goroutines to the log, and start it again",
		)
		return
	}
	f.wrong(
		"the service was killed: endpoints.json exists and nothing answers at %s: %v",
		t.Bound.Admin, err,
	).todo(
		fmt.Sprintf(
			"start it again: hubcloud serve --data-dir %s; the kernel's log (dmesg) shows whether memory "+
				"ran out", t.DataDir,
		),
	)
}

// since describes the running process, "" if unknown.
func since(s *installation.Started) string {
	if s == nil {
		return ""
	}
	return fmt.Sprintf(
		" (process %d, %s, for %s)", s.PID, strings.Join(s.Roles, " "), ago(time.Since(s.At)),
	)
}

// lastEnd describes the end of the last process, or its start if it was killed; "" if unknown.
func lastEnd(s *installation.Started) string {
	switch {
	case s == nil:
		return ""
	case s.Error != "":
		return fmt.Sprintf("; the last one ended %s ago: %s", ago(time.Since(s.EndedAt)), s.Error)
	case !s.EndedAt.IsZero():
		return fmt.Sprintf("; the last one was stopped %s ago", ago(time.Since(s.EndedAt)))
	}
	return fmt.Sprintf("; the last one was started %s ago", ago(time.Since(s.At)))
}
