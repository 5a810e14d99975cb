package cluster

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"hubcloud/streams/streamstest"
)

// holdEnv makes the test binary a process that starts a cluster in the named directory, prints its
// URL, and waits to be killed.
const holdEnv = "HUBCLOUD_TEST_HOLD_CLUSTER"

// containEnv makes that process the first one of a container, as the named user. It prints
// notContained if it may not.
const (
	containEnv   = "HUBCLOUD_TEST_CONTAIN"
	notContained = "no container: "
)

func TestMain(m *testing.M) {
	if user := os.Getenv(containEnv); user != "" {
		if err := contain(user); err != nil {
			fmt.Println(notContained, err)
			os.Exit(1)
		}
	}
	if dir := os.Getenv(holdEnv); dir != "" {
		hold(dir)
		return
	}
	goleak.VerifyTestMain(m)
}

func hold(dir string) {
	c, err := Start(context.Background(), Config{Dir: dir, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(c.URL())
	select {}
}

// holder starts another process that has a cluster in dir. It returns the process and the cluster's
// URL.
func holder(t *testing.T, dir string) (*exec.Cmd, string) {
	t.Helper()
	command := exec.Command(os.Args[0])
	command.Env = append(os.Environ(), holdEnv+"="+dir)
	command.Stderr = os.Stderr
	output, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = command.Process.Kill(); _ = command.Wait() })
	lines := bufio.NewScanner(output)
	if !lines.Scan() || !strings.HasPrefix(lines.Text(), "postgres://") {
		t.Fatalf("the other process prints %q, want a URL", lines.Text())
	}
	return command, lines.Text()
}

func start(t *testing.T, dir string) *Cluster {
	t.Helper()
	c, err := Start(
		t.Context(), Config{Dir: dir, Logger: slog.New(slog.NewTextHandler(t.Output(), nil))},
	)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return c
}

func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func run(t *testing.T, url, sql string) {
	t.Helper()
	if _, err := connect(t, url).Exec(t.Context(), sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

func count(t *testing.T, url string) (n int) {
	t.Helper()
	if err := connect(t, url).QueryRow(t.Context(), "SELECT count(*) FROM kept").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestStartsStopsAndKeepsWhatWasWritten(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "postgres")
	c := start(t, dir)
	conn := connect(t, c.URL())
	var encoding, collation, fsync, addresses string
	if err := conn.QueryRow(t.Context(), `SELECT current_setting('server_encoding'), datcollate, current_setting('fsync'),
		current_setting('listen_addresses') FROM pg_database WHERE datname = current_database()`).Scan(&encoding, &collation, &fsync, &addresses); err != nil {
		t.Fatal(err)
	}
	if encoding != "UTF8" || collation != "C" || fsync != "on" || addresses != "" {
		t.Errorf(
			"encoding %q, collation %q, fsync %q, addresses %q", encoding, collation, fsync,
			addresses,
		)
	}
	run(t, c.URL(), "CREATE TABLE kept AS SELECT 1 AS n")
	begun := time.Now()
	if err := c.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Logf("stop: %s", time.Since(begun))
	if _, err := os.Stat(socketFile(c.socket.path)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the socket is still there: %v", err)
	}
	if pids, err := servers(c.data); err != nil || len(pids) > 0 {
		t.Errorf("still there after Stop: %v, %v", pids, err)
	}
	begun = time.Now()
	again := start(t, dir)
	t.Logf("warm start: %s", time.Since(begun))
	if n := count(t, again.URL()); n != 1 {
		t.Errorf("got %d rows, want 1", n)
	}
	if again.URL() != c.URL() {
		t.Errorf("the URL changed from %s to %s", c.URL(), again.URL())
	}
}

func TestOneProcessHasTheDirectory(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "postgres")
	_, url := holder(t, dir)
	if _, err := Start(t.Context(), Config{
		Dir: dir, Logger: slog.New(slog.DiscardHandler),
	}); !errors.Is(err, ErrInUse) {
		t.Fatalf("a second start: %v", err)
	}
	run(t, url, "SELECT 1")
}

func TestTakesOverAfterItsProcessWasKilled(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "postgres")
	command, url := holder(t, dir)
	run(t, url, "CREATE TABLE kept (n int)")
	for i := range 5 {
		run(t, url, "INSERT INTO kept VALUES (1)")
		if err := command.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = command.Wait()
		if command, url = holder(t, dir); i == 4 {
			_ = command.Process.Kill()
			_ = command.Wait()
		}
	}
	c := start(t, dir)
	if n := count(t, c.URL()); n != 5 {
		t.Errorf("got %d rows, want 5", n)
	}
}

// orphan starts a server on a stopped cluster as if its parent had been killed.
func orphan(t *testing.T, c *Cluster) *exec.Cmd {
	t.Helper()
	arguments := []string{"-D", c.data}
	for _, setting := range c.settings() {
		arguments = append(arguments, "-c", setting)
	}
	command := exec.Command(filepath.Join(c.binary.dir, "postgres"), arguments...)
	command.Dir, command.Env, command.SysProcAttr = "/", environment(), c.owner.attributes(0)
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = command.Process.Kill(); _ = command.Wait() })
	streamstest.Eventually(t, "the orphan is ready", func() bool {
		state := readPIDFile(c.data)
		return state.pid == command.Process.Pid && state.ready
	})
	return command
}

func TestTakesOverFromAServerThatOutlivedItsParent(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "postgres")
	c := start(t, dir)
	run(t, c.URL(), "CREATE TABLE kept AS SELECT 1 AS n")
	if err := c.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	command := orphan(t, c)
	// A session is in the middle of a transaction.
	run(t, c.URL(), "BEGIN; INSERT INTO kept VALUES (2)")
	begun := time.Now()
	again := start(t, dir)
	t.Logf("take-over: %s", time.Since(begun))
	if pid := readPIDFile(again.data).pid; pid == command.Process.Pid {
		t.Error("the old server still has the directory")
	}
	if n := count(t, again.URL()); n != 1 {
		t.Errorf("got %d rows, want 1", n)
	}
}

func TestTakesOverTheChildrenOfAKilledServer(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "postgres")
	c := start(t, dir)
	run(t, c.URL(), "CREATE TABLE kept AS SELECT 1 AS n")
	if err := c.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	command := orphan(t, c)
	// A stopped child does not notice that its parent has ended, and holds the shared memory.
	conn := connect(t, c.URL())
	if err := syscall.Kill(int(conn.PgConn().PID()), syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if err := command.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = command.Wait()
	if n := count(t, start(t, dir).URL()); n != 1 {
		t.Errorf("got %d rows, want 1", n)
	}
}

func TestStartsAgainAServerThatDies(t *testing.T) {
	t.Parallel()
	c := start(t, filepath.Join(t.TempDir(), "postgres"))
	run(t, c.URL(), "CREATE TABLE kept AS SELECT 1 AS n")
	for range 3 {
		pid := readPIDFile(c.data).pid
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		streamstest.Eventually(t, "another server is ready", func() bool {
			state := readPIDFile(c.data)
			return state.ready && state.pid != pid
		})
		if n := count(t, c.URL()); n != 1 {
			t.Errorf("got %d rows, want 1", n)
		}
	}
}

// A server that was killed leaves a lock file in its data directory and one beside its socket.
func TestStaleLockFiles(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "postgres")
	c := start(t, dir)
	if err := c.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	// A process of the server's own user, so that PostgreSQL would take it for a server.
	other := exec.Command("sleep", "60")
	other.SysProcAttr = c.owner.attributes(syscall.SIGKILL)
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = other.Process.Kill(); _ = other.Wait() })
	for name, first := range map[string]string{
		"of no process": "4194303", "of another process": strconv.Itoa(other.Process.Pid),
		"of ours":      strconv.Itoa(os.Getpid()),
		"of no number": "soon", "empty": "",
	} {
		content := first + "\n" + c.data + "\n1700000000\n5432\n" + c.socket.path + "\n\n  1 2\nready\n"
		if first == "" {
			content = ""
		}
		for _, path := range []string{
			filepath.Join(c.data, pidFile), socketFile(c.socket.path) + ".lock",
		} {
			if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			again := start(t, dir)
			run(t, again.URL(), "SELECT 1")
			if err := again.Stop(t.Context()); err != nil {
				t.Errorf("%s: %s: %v", path, name, err)
			}
		}
	}
	if err := other.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("the other process was disturbed: %v", err)
	}
}

// initdb takes a second. An interrupted one must not leave a half-made directory.
func TestAnInterruptedInitdbLeavesNothing(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "postgres")
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer cancel()
		for tick := time.NewTicker(time.Millisecond); ctx.Err() == nil; <-tick.C {
			if half, err := filepath.Glob(filepath.Join(dir, halfMade+"*", "PG_VERSION")); err == nil &&
				len(half) > 0 {
				return
			}
		}
	}()
	if _, err := Start(ctx, Config{Dir: dir, Logger: slog.New(slog.DiscardHandler)}); !errors.Is(
		err, context.Canceled,
	) {
		t.Fatalf("interrupted: %v", err)
	}
	if left, err := filepath.Glob(filepath.Join(dir, halfMade+"*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	// What a killed process leaves is removed by the next.
	if err := os.MkdirAll(filepath.Join(dir, halfMade+"dead", "base"), 0o700); err != nil {
		t.Fatal(err)
	}
	run(t, start(t, dir).URL(), "SELECT 1")
	if left, err := filepath.Glob(filepath.Join(dir, halfMade+"*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// The server that initdb runs outlives a killed initdb by a moment. It made files in the directory
// that the next start was removing, and that start failed.
func TestStartsAtOnceAfterInitdbWasKilled(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"PG_VERSION", "global/pg_control", "base/1/1259", "base/4"} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "postgres")
			command := exec.Command(os.Args[0])
			command.Env = append(os.Environ(), holdEnv+"="+dir)
			if err := command.Start(); err != nil {
				t.Fatal(err)
			}
			for tick := time.NewTicker(time.Millisecond); ; <-tick.C {
				if half, err := filepath.Glob(filepath.Join(dir, halfMade+"*", file)); err == nil &&
					len(half) > 0 {
					break
				}
				if _, err := os.Stat(filepath.Join(dir, "lock")); err == nil {
					if made, _ := existing(dir); len(made) > 0 {
						break // it was faster than this look
					}
				}
			}
			if err := command.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = command.Wait() // it was killed
			run(t, start(t, dir).URL(), "SELECT 1")
			if left, err := filepath.Glob(filepath.Join(dir, halfMade+"*")); err != nil ||
				len(left) > 0 {
				t.Errorf("left behind: %v, %v", left, err)
			}
		})
	}
}

// Tests and careful operators put their data into directories that only root may enter.
func TestRunsBelowAClosedDirectory(t *testing.T) {
	t.Parallel()
	closed := filepath.Join(t.TempDir(), "closed")
	if err := os.Mkdir(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	run(
		t, start(t, filepath.Join(closed, "postgres")).URL(),
		"CREATE TABLE kept AS SELECT 1 AS n; CHECKPOINT",
	)
}

func TestALongPathGetsAShortSocket(t *testing.T) {
	t.Parallel()
	deep := filepath.Join(t.TempDir(), strings.Repeat("long/", 30))
	if err := os.MkdirAll(deep, 0o755); err != nil {
		t.Fatal(err)
	}
	c := start(t, filepath.Join(deep, "postgres"))
	run(t, c.URL(), "SELECT 1")
	info, err := os.Stat(c.socket.path)
	if err != nil || info.Mode().Perm() != 0o700 || !c.socket.temporary {
		t.Errorf("socket directory %s: %v, %v", c.socket.path, info, err)
	}
	if err := c.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(c.socket.path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s is still there: %v", c.socket.path, err)
	}
}

func TestSocketDirectoryOfAnotherUserIsRejected(t *testing.T) {
	t.Parallel()
	deep := filepath.Join(t.TempDir(), strings.Repeat("long/", 30), "postgres")
	chosen, err := chooseSocketDir(deep, identity{uid: uint32(os.Geteuid())})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(chosen.remove)
	if err := os.Chmod(chosen.path, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := chooseSocketDir(deep, identity{uid: uint32(os.Geteuid())}); err == nil {
		t.Error("a directory that every user may write to was accepted for the socket")
	}
}

func TestInstalledBinariesAreOrdered(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	fake := func(name string, major int) string {
		dir := filepath.Join(root, name)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		script := fmt.Sprintf("#!/bin/sh\necho 'postgres (PostgreSQL) %d.4 (Debian)'\n", major)
		for _, program := range []string{"initdb", "postgres"} {
			if err := os.WriteFile(filepath.Join(dir, program), []byte(script), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		return dir
	}
	old, path, newest := fake("old", 9), fake("path", 14), fake("newest", 17)
	middle, empty := fake("middle", 16), filepath.Join(root, "empty")
	got := installedBinaries(t.Context(), []string{path, old, middle, empty, newest})
	want := []binaries{{path, 14}, {newest, 17}, {middle, 16}}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("found %v, want %v", got, want)
	}
	if got := installedBinaries(t.Context(), []string{empty, middle, newest}); len(got) != 2 ||
		got[0].major != 17 {
		t.Errorf("without PATH: %v", got)
	}
}

func TestServerLinesAreLogged(t *testing.T) {
	t.Parallel()
	var got strings.Builder
	o := newOutput(slog.New(slog.NewTextHandler(&got, &slog.HandlerOptions{Level: slog.LevelWarn})))
	for _, part := range []string{
		"00000 LOG:  quiet\n57P03 FATAL:  starting up\n0100", "0 WARNING:  odd\n",
		"XX000 PANIC:  bad\n", "\n", "F0001 FATAL:  in use\n",
	} {
		if n, err := o.Write([]byte(part)); n != len(part) || err != nil {
			t.Fatal(n, err)
		}
	}
	for _, want := range []string{
		"level=WARN msg=\"postgres: odd\"", "level=ERROR msg=\"postgres: bad\"",
	} {
		if !strings.Contains(got.String(), want) {
			t.Errorf("no %q in %s", want, got.String())
		}
	}
	if strings.Contains(got.String(), "quiet") || strings.Contains(got.String(), "starting up") {
		t.Errorf("noise: %s", got.String())
	}
	if !o.foundLock() || !strings.HasSuffix(o.last(), "in use") {
		t.Errorf("last lines: %s", o.last())
	}
	if n, err := o.Write([]byte(strings.Repeat("x", 3*maxLine))); err != nil || n != 3*maxLine ||
		len(o.rest) > maxLine {
		t.Errorf("a line without end: %d bytes held", len(o.rest))
	}
}

// A server must not keep running if its process is never started again.
func TestTheServerEndsWhenItsProcessIsKilled(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("only Linux signals a child when its parent dies")
	}
	dir := filepath.Join(t.TempDir(), "postgres")
	command, url := holder(t, dir)
	run(t, url, "SELECT 1")
	majors, err := existing(dir)
	if err != nil || len(majors) != 1 {
		t.Fatal(majors, err)
	}
	data := filepath.Join(dir, strconv.Itoa(majors[0]))
	if pids, err := servers(data); err != nil || len(pids) == 0 {
		t.Fatalf("the server is not seen: %v, %v", pids, err)
	}
	if err := command.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = command.Wait()
	streamstest.Eventually(t, "the server has ended", func() bool {
		pids, err := servers(data)
		return err == nil && len(pids) == 0
	})
}

// A killed server leaves its process id in postmaster.pid. A Stop whose context ended killed the
// process that had this id by then.
func TestAbortEndsNoOtherProcess(t *testing.T) {
	t.Parallel()
	other := exec.Command("sleep", "60")
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	c := &Cluster{data: t.TempDir()}
	pid := fmt.Appendf(nil, "%d\n", other.Process.Pid)
	if err := os.WriteFile(filepath.Join(c.data, pidFile), pid, 0o600); err != nil {
		t.Fatal(err)
	}
	c.abort()
	if err := other.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := other.Wait(); err == nil || err.Error() != "signal: killed" {
		t.Errorf(
			"a process that is no server ended with %v instead of being killed by this test", err,
		)
	}
}
