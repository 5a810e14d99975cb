package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hubcloud/streams/streamstest"
)

// Usage errors of tap are reported before it connects.
func TestTapUsageErrors(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	notCredentials := filepath.Join(dir, "none.json")
	content := []byte(`{"url": "nats://127.0.0.1:1", "password": "hunter2"}`)
	streamstest.Must(t, os.WriteFile(notCredentials, content, 0o600))
	for _, c := range []struct {
		line string
		code int
		says string
	}{
		{"--hub HUB-1", exitUsage, "--hub"},
		{"--since yesterday", exitUsage, "--since"},
		{"--since -2h", exitUsage, "--since"},
		{"--since 2h --new --follow", exitUsage, "--since and --new"},
		{"--new", exitUsage, "--follow"},
		{"--format xml", exitUsage, "--format"},
		{"--checkpoint-every 0s", exitUsage, "--checkpoint-every"},
		{"--publish events", exitUsage, "--publish-url"},
		{"--publish-url nats://127.0.0.1:1", exitUsage, "--publish"},
		{"--publish events.> --publish-url nats://127.0.0.1:1", exitUsage, "--publish"},
		{"--nats-credentials " + dir + "/nowhere.json", exitUsage, "hubcloud tap credentials"},
		{"--nats-credentials " + notCredentials, exitFailed, "tap credentials"},
		{"--data-dir " + dir, exitFailed, "hubcloud serve"},
		{"credentials --list --rotate a", exitUsage, "--"},
		{"credentials --revoke a --out f", exitUsage, "--out"},
	} {
		_, errs, code := run(t, strings.Split("tap "+c.line, " ")...)
		if code != c.code || !strings.Contains(errs, c.says) || strings.Count(errs, "\n") != 1 ||
			strings.Contains(errs, "hunter2") {
			t.Errorf("hubcloud tap %s: exit code %d, printed %q", c.line, code, errs)
		}
	}
}

func TestTapSince(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for text, want := range map[string]time.Time{
		"":                            {},
		"2h":                          now.Add(-2 * time.Hour),
		"90s":                         now.Add(-90 * time.Second),
		"2026-01-01T00:00:00Z":        time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
		"2026-01-01T02:00:00.5+02:00": time.Date(2026, 1, 1, 0, 0, 0, 5e8, time.UTC),
	} {
		if got, err := timeOf("--since", text, now); err != nil || !got.Equal(want) {
			t.Errorf("--since %s is %v, %v; want %v", text, got, err, want)
		}
	}
}
