package operators

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"hubcloud/test/harness"
	"hubcloud/test/population"
)

// command is a running command of the binary.
type command struct {
	t     *testing.T
	cmd   *exec.Cmd
	out   bytes.Buffer
	errs  bytes.Buffer
	ended chan struct{}
}

// begin starts a command on a service.
func begin(t *testing.T, s *harness.Service, args ...string) *command {
	t.Helper()
	line := append([]string{args[0], args[1], "--data-dir", s.Dir}, args[2:]...)
	c := &command{t: t, cmd: exec.Command(harness.Binary(t), line...), ended: make(chan struct{})}
	c.cmd.Stdout, c.cmd.Stderr = &c.out, &c.errs
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	harness.Must(t, c.cmd.Start())
	go func() {
		defer close(c.ended)
		_ = c.cmd.Wait() // ProcessState has the result
	}()
	t.Cleanup(c.kill)
	return c
}

// kill sends SIGKILL and waits until the command has exited.
func (c *command) kill() {
	select {
	case <-c.ended:
	default:
		_ = c.cmd.Process.Kill() // fails only after the process has exited
		<-c.ended
	}
}

// wait waits for the command's exit and returns its exit code.
func (c *command) wait() int {
	c.t.Helper()
	select {
	case <-c.ended:
	case <-time.After(10 * time.Minute):
		c.kill()
		c.t.Fatalf(
			"%v: still running after ten minutes: %s%s", c.cmd.Args, c.out.String(),
			c.errs.String(),
		)
	}
	return c.cmd.ProcessState.ExitCode()
}

// rebuild rebuilds the read models.
func rebuild(t *testing.T, s *harness.Service) {
	t.Helper()
	c := begin(t, s, "projections", "rebuild", "--json")
	if code := c.wait(); code != 0 {
		t.Fatalf("rebuild: got exit code %d, want 0: %s%s", code, c.out.String(), c.errs.String())
	}
	var done struct {
		State  string
		Events uint64
	}
	if err := json.Unmarshal(c.out.Bytes(), &done); err != nil || done.State != "switched" ||
		done.Events == 0 {
		t.Fatalf(
			"rebuild: %v; want events and the state switched, got %s%s", err, c.out.String(),
			c.errs.String(),
		)
	}
}

// verify runs projections verify and returns the differences that it reports. It checks that the
// exit code is 1 if there are any, and 0 if there are none.
func verify(t *testing.T, s *harness.Service) []json.RawMessage {
	t.Helper()
	c := begin(t, s, "projections", "verify", "--json")
	code := c.wait()
	var differences []json.RawMessage
	names := map[string]bool{}
	for line := range strings.Lines(c.out.String()) {
		var row struct {
			Name        string
			Differences []json.RawMessage
		}
		if err := json.Unmarshal([]byte(line), &row); err != nil || row.Differences == nil {
			t.Fatalf("verify printed %q: %v\n%s", line, err, c.errs.String())
		}
		names[row.Name] = true
		differences = append(differences, row.Differences...)
	}
	if !names["directory"] || !names["presence"] || !names["devices"] || code != min(len(differences), 1) {
		t.Fatalf(
			"verify: got exit code %d with %d differences: %s%s", code, len(differences),
			c.out.String(), c.errs.String(),
		)
	}
	return differences
}

// changedByHand changes rows in the database. verify must name the table and the key of each, and a
// rebuild must repair them.
func changedByHand(t *testing.T, s *harness.Service, made population.Population) {
	if differences := verify(t, s); len(differences) != 0 {
		t.Fatalf(
			"before the changes: got %d differences, want 0, for example %s", len(differences),
			differences[0],
		)
	}
	org := made.Orgs[1]
	schema := liveSchemas(t, s)[0]
	seen := query[string](t, s, "SELECT hub_id FROM "+schema+".hub_presence LIMIT 1")[0]
	// verify must name the table, and the text of named.
	changes := []struct{ sql, key, table, named string }{
		{
			"UPDATE sites SET name = 'Elsewhere' WHERE id = $1",
			org.Sites[0].ID,
			"sites",
			org.Sites[0].ID,
		},
		{"DELETE FROM hubs WHERE id = $1", org.Hubs[0].ID, "hubs", org.Hubs[0].ID},
		{
			"UPDATE members SET role = 'admin' WHERE id = $1",
			org.Members[0].ID,
			"members",
			org.Members[0].ID,
		},
		{
			"INSERT INTO orgs (id, name, created_at) VALUES ($1, 'Forged', now())",
			"forged",
			"orgs",
			"forged",
		},
		{
			"UPDATE hub_presence SET online = NOT online WHERE hub_id = $1",
			seen,
			"hub_presence",
			seen,
		},
		{
			"UPDATE api_keys SET secret_hash = '\\x00' WHERE org_id = $1 AND label = 'key 0'",
			org.ID,
			"api_keys",
			"secret_hash",
		},
		{
			"UPDATE activity SET detail = 'forged' WHERE org_id = $1 AND type = 'org.created'",
			org.ID,
			"activity",
			org.ID,
		},
	}
	for _, c := range changes {
		execute(t, databaseURL(t, s)+"&search_path="+schema, c.sql, c.key)
	}
	differences := verify(t, s)
	if len(differences) != len(changes) {
		t.Errorf("got %d differences, want %d: %s", len(differences), len(changes), differences)
	}
	for _, c := range changes {
		if !slices.ContainsFunc(differences, func(d json.RawMessage) bool {
			return bytes.Contains(d, []byte(c.table)) && bytes.Contains(d, []byte(c.named))
		}) {
			t.Errorf("%s: want %s of %s named, got %s", c.sql, c.named, c.table, differences)
		}
	}
	text := begin(t, s, "projections", "verify")
	if code := text.wait(); code != 1 ||
		!strings.Contains(text.out.String(), org.Sites[0].ID) ||
		!strings.Contains(text.out.String(), "sites") {
		t.Errorf(
			"verify without --json: got exit code %d, want 1 and site %s named: %s%s", code,
			org.Sites[0].ID, &text.out, &text.errs,
		)
	}
	rebuild(t, s)
	if differences := verify(t, s); len(differences) != 0 {
		t.Errorf("after a rebuild: got differences %s, want none", differences)
	}
	s.CLI("projections", "drop")
	if left := query[string](
		t, s, "SELECT nspname FROM pg_namespace WHERE nspname LIKE 'hubcloud\\_%'",
	); len(left) != 1 {
		t.Errorf("schemas after drop: got %v, want one", left)
	}
}
