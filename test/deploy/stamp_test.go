package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"hubcloud/streams/streamstest"
)

// TestStamp checks what a build records: the tag of a checkout, for another commit a version that
// sorts before the changelog's newest, and "unknown" outside a checkout.
func TestStamp(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	streamstest.Must(t, os.MkdirAll(filepath.Join(dir, "deploy/release"), 0o755))
	script := filepath.Join(dir, "deploy/release/stamp.sh")
	streamstest.Must(t, os.WriteFile(script, read(t, "release/stamp.sh"), 0o755))
	changelog := []byte("# Changelog\n\n## 1.4.0\n\nNew.\n\n## 1.3.0\n")
	streamstest.Must(t, os.WriteFile(filepath.Join(dir, "CHANGELOG.md"), changelog, 0o644))
	run := func(program string, args ...string) string {
		t.Helper()
		command := exec.Command(program, args...)
		command.Dir = dir
		command.Env = append(
			os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir),
			"GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null",
			"GIT_AUTHOR_NAME=A", "GIT_AUTHOR_EMAIL=a@example.org",
			"GIT_COMMITTER_NAME=A", "GIT_COMMITTER_EMAIL=a@example.org",
			"GIT_COMMITTER_DATE=2026-03-04T05:06:07+02:00",
		)
		out, err := command.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %v: %v: %s", program, args, err, out)
		}
		return string(out)
	}
	const unknown = "VERSION=unknown\nCOMMIT=unknown\nBUILD_DATE=unknown\n"
	if got := run(script); got != unknown {
		t.Errorf("outside a checkout: got %q, want %q", got, unknown)
	}
	run("git", "init", "--quiet")
	run("git", "add", ".")
	run("git", "commit", "--quiet", "-m", "first")
	commit := strings.TrimSpace(run("git", "rev-parse", "HEAD"))
	tail := "\nCOMMIT=" + commit + "\nBUILD_DATE=2026-03-04T03:06:07Z\n"
	want := "VERSION=1.4.0-dev.20260304030607.g" + commit[:12] + tail
	if got := run(script); got != want {
		t.Errorf("a commit: got %q, want %q", got, want)
	}
	run("git", "tag", "v1.4.0")
	if got, want := run(script), "VERSION=1.4.0"+tail; got != want {
		t.Errorf("a tag: got %q, want %q", got, want)
	}
	streamstest.Must(t, os.WriteFile(script, append(read(t, "release/stamp.sh"), '\n'), 0o755))
	if got := run(script); !strings.HasPrefix(got, "VERSION=1.4.0-dev.") ||
		!strings.Contains(got, commit+"-dirty\n") {
		t.Errorf("changed files: got %q, want no release and the commit with -dirty", got)
	}
}
