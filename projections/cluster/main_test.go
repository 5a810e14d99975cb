package cluster

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

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
	streamstest.Must(t, err)
	streamstest.Must(t, command.Start())
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
		awaitServersEnd(t, dir)
	})
	lines := bufio.NewScanner(output)
	if !lines.Scan() || !strings.HasPrefix(lines.Text(), "postgres://") {
		t.Fatalf("the other process prints %q, want a URL", lines.Text())
	}
	return command, lines.Text()
}

// awaitServersEnd waits until no server runs in dir. A server whose parent was killed shuts down by
// itself, and writes to its directory until then: removing the directory meanwhile would fail.
func awaitServersEnd(t *testing.T, dir string) {
	t.Helper()
	clusters, err := filepath.Glob(filepath.Join(dir, "[1-9]*"))
	streamstest.Must(t, err)
	for _, data := range clusters {
		streamstest.Eventually(t, "no server runs in "+data, func() bool {
			pids, err := servers(data)
			return err == nil && len(pids) == 0
		})
	}
}

func start(t *testing.T, dir string) *Cluster {
	t.Helper()
	c, err := Start(
		t.Context(), Config{Dir: dir, Logger: slog.New(slog.NewTextHandler(t.Output(), nil))},
	)
	streamstest.Must(t, err)
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
	streamstest.Must(t, err)
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
	streamstest.Must(t, connect(t, url).QueryRow(
		t.Context(), "SELECT count(*) FROM kept",
	).Scan(&n))
	return n
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
	streamstest.Must(t, command.Start())
	t.Cleanup(func() { _ = command.Process.Kill(); _ = command.Wait() })
	streamstest.Eventually(t, "the orphan is ready", func() bool {
		state := readPIDFile(c.data)
		return state.pid == command.Process.Pid && state.ready
	})
	return command
}
