package readmodel_test

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"hubcloud/projections/projectionstest"
	"hubcloud/projections/readmodel"
	"hubcloud/projections/schema"
	"hubcloud/streams/streamstest"
)

// Through PgBouncer in transaction mode a process started, repeated "prepared statement … already
// exists" for ever, and its read models were never complete. It is rejected at the start.
func TestPoolerIsRejected(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("pgbouncer"); err != nil {
		t.Skip("NOT TRIED: needs pgbouncer")
	}
	const ignored = "ignore_startup_parameters = search_path, timezone, " +
		"idle_in_transaction_session_timeout"
	for _, c := range []struct {
		name, settings string
		// session means that each connection has a session of its own.
		session bool
	}{
		{"transaction", "pool_mode = transaction\n" + ignored, false},
		{"in turn", "pool_mode = transaction\nserver_round_robin = 1\n" + ignored, false},
		{"statement", "pool_mode = statement\n" + ignored, false},
		{"session", "pool_mode = session\n" + ignored, true},
		{"strict", "pool_mode = transaction", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			through := startPgBouncer(t, projectionstest.NewDatabase(t, ""), c.settings)
			// Whatever the mode, it does not pass search_path on.
			s, err := readmodel.Open(t.Context(), readmodel.Config{
				URL: through, InstallationID: "test", Logger: projectionstest.Logger(t),
			})
			if !errors.Is(err, schema.ErrPooler) || !readmodel.Rejects(err) {
				t.Errorf("Open: got %v, want ErrPooler", err)
			}
			if err != nil && strings.Contains(err.Error(), "\n") {
				t.Errorf("Open: got %q, want one line", err)
			}
			if err == nil {
				s.Close()
			}
			config, err := pgx.ParseConfig(through)
			streamstest.Must(t, err)
			conn, err := pgx.ConnectConfig(t.Context(), config)
			streamstest.Must(t, err)
			defer conn.Close(t.Context())
			config.RuntimeParams["search_path"] = `"$user", public` // the server's default
			if err := schema.CheckSession(t.Context(), config, conn); c.session != (err == nil) ||
				err != nil && !errors.Is(err, schema.ErrPooler) {
				t.Errorf("CheckSession: got %v, want nil: %v", err, c.session)
			}
		})
	}
	direct := projectionstest.NewDatabase(t, "")
	config, err := schema.PoolConfig(direct, "public")
	streamstest.Must(t, err)
	err = schema.WithConn(t.Context(), config.ConnConfig, func(conn *pgx.Conn) error {
		return schema.CheckSession(t.Context(), config.ConnConfig, conn)
	})
	if err != nil {
		t.Errorf("CheckSession of a direct connection: got %v, want nil", err)
	}
}

// startPgBouncer runs PgBouncer in front of a database until the test ends, and returns the URL.
func startPgBouncer(t *testing.T, to, settings string) string {
	t.Helper()
	server, err := url.Parse(to)
	streamstest.Must(t, err)
	socket := server.Query().Get("host")
	dir, err := os.MkdirTemp("", "pgb") // a socket's path must be short
	streamstest.Must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	config := filepath.Join(dir, "pgbouncer.ini")
	streamstest.Must(t, os.WriteFile(config, fmt.Appendf(nil, `[databases]
* = host=%s port=5432 user=%s
[pgbouncer]
listen_port = 6432
unix_socket_dir = %s
auth_type = any
%s
`, socket, server.Query().Get("user"), dir, settings), 0o644))
	info, err := os.Stat(socket)
	streamstest.Must(t, err)
	pooler := exec.Command("pgbouncer", "-q", config)
	pooler.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if owner := info.Sys().(*syscall.Stat_t); os.Getuid() == 0 {
		// PgBouncer does not run as root, and must reach the socket.
		streamstest.Must(t, os.Chmod(filepath.Dir(filepath.Dir(socket)), 0o711))
		pooler.SysProcAttr.Credential = &syscall.Credential{Uid: owner.Uid, Gid: owner.Gid}
		streamstest.Must(t, os.Chown(dir, int(owner.Uid), int(owner.Gid)))
	}
	var log strings.Builder
	pooler.Stderr = &log
	streamstest.Must(t, pooler.Start())
	t.Cleanup(func() {
		_ = pooler.Process.Kill() // it may have ended
		_ = pooler.Wait()
		if t.Failed() {
			t.Log(log.String())
		}
	})
	streamstest.Eventually(t, "PgBouncer listens", func() bool {
		_, err := os.Stat(filepath.Join(dir, ".s.PGSQL.6432"))
		return err == nil
	})
	query := server.Query()
	query.Set("host", dir)
	query.Set("port", "6432")
	server.RawQuery = query.Encode()
	return server.String()
}
