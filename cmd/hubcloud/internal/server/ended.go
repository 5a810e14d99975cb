package server

import (
	"log/slog"
	"os"
	"time"

	"hubcloud/cmd/hubcloud/internal/installation"
)

// recordEnd writes to service.json that this process has ended and why, for the doctor. cause is
// nil when the process was told to stop. It writes nothing while another process uses the
// directory, and when it cannot write there, which may be the cause.
func recordEnd(cfg Config, cause error, logger *slog.Logger) {
	dir := installation.Dir(cfg.DataDir)
	if _, err := os.Stat(cfg.DataDir); err != nil {
		return
	}
	lock, err := dir.Lock()
	if err != nil {
		return
	}
	defer func() {
		if err := lock.Release(); err != nil {
			logger.Warn("data directory not unlocked", "error", err)
		}
	}()
	started, err := dir.Started()
	if err != nil || started.PID != os.Getpid() { // the start failed before it wrote the file
		described, _ := describe(cfg) // without a mail server that cannot be read
		started = &described
	}
	started.EndedAt = time.Now().UTC()
	if cause != nil {
		started.Error = cause.Error()
	}
	if err := dir.WriteStarted(*started); err != nil {
		logger.Warn("end not recorded", "file", installation.StartedFile, "error", err)
	}
}
