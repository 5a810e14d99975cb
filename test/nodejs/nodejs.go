// Package nodejs installs pinned packages of the npm registry for tests and runs their programs.
// Tests are skipped, with the reason, where Node or the registry is missing.
package nodejs

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"hubcloud/streams/streamstest"
)

const (
	// oldest is the oldest major version of Node that the packages run on.
	oldest = 20
	// installTimeout bounds an installation, registry and all, on a busy machine.
	installTimeout = 10 * time.Minute
	// runTimeout bounds a program.
	runTimeout = 8 * time.Minute
)

// Install installs the packages of a folder's package-lock.json into test/artifacts, once per
// version of the lock file, and returns the path of the installation. manifests is the folder of
// package.json and package-lock.json, and of the workspaces that they name; name is the folder's
// name below test/artifacts.
func Install(t testing.TB, manifests, name string, workspaces ...string) string {
	t.Helper()
	requireNode(t)
	dir, err := filepath.Abs(filepath.Join("..", "artifacts", name))
	streamstest.Must(t, err)
	streamstest.Must(t, os.MkdirAll(dir, 0o755))
	unlock := lock(t, filepath.Join(dir, "install.lock"))
	defer unlock()
	sum := sha256.New()
	files := []string{"package.json", "package-lock.json"}
	for _, workspace := range workspaces {
		streamstest.Must(t, os.MkdirAll(filepath.Join(dir, workspace), 0o755))
		files = append(files, filepath.Join(workspace, "package.json"))
	}
	for _, file := range files {
		text, err := os.ReadFile(filepath.Join(manifests, file))
		streamstest.Must(t, err)
		sum.Write(text)
		streamstest.Must(t, os.WriteFile(filepath.Join(dir, file), text, 0o600))
	}
	want, stamp := hex.EncodeToString(sum.Sum(nil)), filepath.Join(dir, "installed")
	if have, err := os.ReadFile(stamp); err == nil && string(have) == want {
		return dir
	}
	ctx, cancel := context.WithTimeout(t.Context(), installTimeout)
	defer cancel()
	out, err := command(
		ctx, dir, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline",
	).CombinedOutput()
	switch {
	case ctx.Err() != nil:
		t.Skipf("NOT TRIED: npm did not install the packages within %v:\n%s", installTimeout, out)
	case err != nil && isUnreachable(string(out)):
		t.Skipf("NOT TRIED: the npm registry cannot be reached:\n%s", out)
	case err != nil:
		t.Fatalf("npm ci: %v\n%s", err, out)
	}
	streamstest.Must(t, os.WriteFile(stamp, []byte(want), 0o600))
	return dir
}

// requireNode skips the test unless Node and npm are installed.
func requireNode(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, "node", "--version").Output()
	if err != nil {
		t.Skipf("NOT TRIED: needs Node %d: %v", oldest, err)
	}
	major, _, _ := strings.Cut(strings.TrimPrefix(string(out), "v"), ".")
	if version, err := strconv.Atoi(major); err != nil || version < oldest {
		t.Skipf("NOT TRIED: needs Node %d, found %s", oldest, out)
	}
	if _, err := exec.LookPath("npm"); err != nil {
		t.Skipf("NOT TRIED: needs npm: %v", err)
	}
}

// isUnreachable reports whether npm failed because of the network.
func isUnreachable(output string) bool {
	for _, code := range []string{
		"ENOTFOUND", "ECONNREFUSED", "ECONNRESET", "ETIMEDOUT", "EAI_AGAIN", "ENETUNREACH",
		"EHOSTUNREACH", "ERR_SOCKET_TIMEOUT", "E403", "E502", "E503", "ENOTCACHED",
	} {
		if strings.Contains(output, code) {
			return true
		}
	}
	return false
}

// Program returns the command of an installed program. It is killed when the test ends and after
// some minutes.
func Program(t testing.TB, installation, workDir, name string, args ...string) *exec.Cmd {
	t.Helper()
	return Command(t, workDir, filepath.Join(installation, "node_modules", ".bin", name), args...)
}

// Command returns a command that is killed when the test ends and after some minutes.
func Command(t testing.TB, workDir, name string, args ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), runTimeout)
	t.Cleanup(cancel)
	return command(ctx, workDir, name, args...)
}

// Run runs a command and returns its standard output. The test fails if the command fails.
func Run(t testing.TB, cmd *exec.Cmd) string {
	t.Helper()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s: %v\n%s%s", strings.Join(cmd.Args, " "), err, out.String(), errs.String())
	}
	return out.String()
}

// command returns a command whose processes all end with ctx.
func command(ctx context.Context, workDir, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = workDir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	return cmd
}

// lock waits for the lock of a file, which ends with the process at the latest.
func lock(t testing.TB, path string) (unlock func()) {
	t.Helper()
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	streamstest.Must(t, err)
	deadline := time.Now().Add(2 * installTimeout)
	for syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		if time.Now().After(deadline) {
			t.Fatalf("%s: still locked after %v", path, 2*installTimeout)
		}
		time.Sleep(100 * time.Millisecond) // a lock of another process cannot be waited for in time
	}
	return func() { file.Close() }
}
