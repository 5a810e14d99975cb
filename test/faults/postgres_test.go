package faults

import (
	"bytes"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"hubcloud/streams/streamstest"
)

// postgresServer is a PostgreSQL server that is reached over TCP.
type postgresServer struct {
	t       *testing.T
	address string
	bin     string
	data    string
	process *exec.Cmd
	ended   chan struct{}
}

// newPostgres creates a database cluster. Call start to start its server.
func newPostgres(t *testing.T) *postgresServer {
	t.Helper()
	p := &postgresServer{
		t:       t,
		address: streamstest.FreeAddress(t),
		bin:     postgresBinaries(t),
		data:    filepath.Join(t.TempDir(), "postgres"),
	}
	owner, err := user.Lookup("postgres")
	if err != nil {
		t.Skipf(
			"NOT TRIED: PostgreSQL does not run as root, and the user postgres does not exist: %v",
			err,
		)
	}
	uid, uidErr := strconv.Atoi(owner.Uid)
	gid, gidErr := strconv.Atoi(owner.Gid)
	if uidErr != nil || gidErr != nil {
		t.Fatal(uidErr, gidErr)
	}
	// The user postgres must reach its files below the test's folder.
	streamstest.Must(t, os.Chmod(filepath.Dir(filepath.Dir(p.data)), 0o711))
	streamstest.Must(t, os.Mkdir(p.data, 0o700))
	streamstest.Must(t, os.Chown(p.data, uid, gid))
	initdb := p.command(
		"initdb", "-D", p.data, "-U", "hubcloud", "-A", "trust", "-E", "UTF8", "--locale", "C",
		"--no-sync",
	)
	if out, err := initdb.CombinedOutput(); err != nil {
		t.Fatalf("initdb: %v\n%s", err, out)
	}
	rules := []byte("host all all 0.0.0.0/0 trust\n")
	streamstest.Must(t, os.WriteFile(filepath.Join(p.data, "pg_hba.conf"), rules, 0o600))
	t.Cleanup(func() {
		if p.process != nil {
			p.kill()
		}
	})
	return p
}

// postgresBinaries returns the folder of PostgreSQL's programs.
func postgresBinaries(t *testing.T) string {
	t.Helper()
	if path, err := exec.LookPath("initdb"); err == nil {
		if path, err = filepath.EvalSymlinks(path); err == nil {
			return filepath.Dir(path)
		}
	}
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin")
	if err != nil || len(found) == 0 {
		t.Skip("NOT TRIED: PostgreSQL's server programs are not installed")
	}
	return found[len(found)-1]
}

// command returns a command that runs a program of PostgreSQL as the user postgres.
func (p *postgresServer) command(program string, arguments ...string) *exec.Cmd {
	line := append([]string{
		"--reuid", "postgres", "--regid", "postgres", "--clear-groups", "--",
		filepath.Join(p.bin, program),
	}, arguments...)
	command := exec.Command("setpriv", line...)
	command.Dir = "/"
	return command
}

func (p *postgresServer) start() {
	p.t.Helper()
	host, port, err := net.SplitHostPort(p.address)
	streamstest.Must(p.t, err)
	p.process = p.command(
		"postgres", "-D", p.data, "-c", "listen_addresses="+host, "-p", port,
		"-c", "unix_socket_directories=", "-c", "fsync=off", "-c", "max_connections=200",
	)
	log, err := os.OpenFile(p.data+".log", os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	streamstest.Must(p.t, err)
	defer log.Close()
	p.process.Stderr = log
	streamstest.Must(p.t, p.process.Start())
	ended := make(chan struct{})
	p.ended = ended
	process := p.process
	go func() {
		defer close(ended)
		_ = process.Wait() // Wait reports the kill
	}()
	streamstest.Eventually(p.t, "the database takes connections", func() bool {
		conn, err := net.DialTimeout("tcp", p.address, time.Second)
		return err == nil && conn.Close() == nil
	})
}

// url returns the address of the server's database.
func (p *postgresServer) url() string {
	return "postgres://hubcloud@" + p.address + "/postgres?sslmode=disable"
}

// signal sends a signal to every process of the server.
func (p *postgresServer) signal(signal syscall.Signal) {
	p.t.Helper()
	for _, pid := range append(childrenOf(p.process.Process.Pid), p.process.Process.Pid) {
		_ = syscall.Kill(pid, signal) // a backend may have exited
	}
}

// kill sends SIGKILL to the server and its child processes.
func (p *postgresServer) kill() {
	p.signal(syscall.SIGKILL)
	<-p.ended
}

// childrenOf returns the child processes of a process.
func childrenOf(parent int) []int {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat") // fails only for a bad pattern
	var children []int
	for _, path := range stats {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // the process has exited
		}
		// pid (name) state ppid …
		fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err == nil && len(fields) > 1 && fields[1] == strconv.Itoa(parent) {
			children = append(children, pid)
		}
	}
	return children
}
