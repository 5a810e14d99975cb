package harness

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

var binary = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "hubcloud-test-")
	if err != nil {
		return "", err
	}
	built.Store(&dir)
	path := filepath.Join(dir, "hubcloud")
	return path, build("-o", path)
})

// built is the folder of the binary that Binary built. It is nil until Binary builds one.
var built atomic.Pointer[string]

// root returns the root folder of the service's module.
func root() (string, error) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "hubcloud").Output()
	if err != nil {
		return "", fmt.Errorf("go list: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}

// build builds the program without the test module (GOWORK=off), as releases are built, but in less
// CPU time: garbage is collected less often, and the linker writes nothing for debuggers.
func build(options ...string) error {
	dir, err := root()
	if err != nil {
		return err
	}
	command := exec.Command(
		"go",
		slices.Concat([]string{"build", "-ldflags=-w"}, options, []string{"./cmd/hubcloud"})...)
	command.Dir, command.Env = dir, append(os.Environ(), "GOWORK=off", "GOGC=400")
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w\n%s", err, out)
	}
	return nil
}

// Binary returns the path of the binary under test. It builds the binary once per test run, unless
// HUBCLOUD_TEST_BINARY names one. HUBCLOUD_TEST_BUILD identifies the sources of that one.
func Binary(t testing.TB) string {
	t.Helper()
	if path := os.Getenv("HUBCLOUD_TEST_BINARY"); path != "" {
		// `go test` reuses a result only if the variables that the test read are the same. It does
		// not see the content of a binary that the test only runs.
		_ = os.Getenv("HUBCLOUD_TEST_BUILD")
		return path
	}
	path, err := binary()
	Must(t, err)
	return path
}

// BuildWith builds a binary with some source files replaced and returns its path. The keys of
// replaced are absolute paths or paths in the repository. The binary is removed when the test ends.
func BuildWith(t testing.TB, replaced map[string][]byte) string {
	t.Helper()
	sources, err := root()
	Must(t, err)
	dir := t.TempDir()
	overlay := struct{ Replace map[string]string }{map[string]string{}}
	for name, content := range replaced {
		file := filepath.Join(dir, strings.ReplaceAll(name, "/", "_"))
		Must(t, os.WriteFile(file, content, 0o600))
		if !filepath.IsAbs(name) {
			name = filepath.Join(sources, name)
		}
		overlay.Replace[name] = file
	}
	text, err := json.Marshal(overlay)
	Must(t, err)
	list, path := filepath.Join(dir, "overlay.json"), filepath.Join(dir, "hubcloud")
	Must(t, os.WriteFile(list, text, 0o600))
	Must(t, build("-overlay", list, "-o", path))
	return path
}

// RunBinary runs the binary and returns its output and exit code.
func RunBinary(t testing.TB, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	return RunBinaryWith(t, nil, args...)
}

// RunBinaryWith is RunBinary with additional environment variables, as NAME=VALUE.
func RunBinaryWith(
	t testing.TB, environment []string, args ...string,
) (stdout, stderr string, code int) {
	t.Helper()
	return runProgram(t, Binary(t), environment, args)
}

// runProgram is RunBinaryWith of the program at a path.
func runProgram(
	t testing.TB, program string, environment, args []string,
) (stdout, stderr string, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, program, args...)
	command.Env = append(os.Environ(), environment...)
	var out, errs bytes.Buffer
	command.Stdout, command.Stderr = &out, &errs
	err := command.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return out.String(), errs.String(), command.ProcessState.ExitCode()
}
