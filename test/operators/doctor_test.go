package operators

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"hubcloud/streams/streamstest"
	"hubcloud/test/harness"
)

// TestDoctor breaks one thing after the other around a running service. The doctor must find each.
func TestDoctor(t *testing.T) {
	t.Parallel()
	nowhere := harness.FreeAddress(t)
	s := harness.Start(t, "--smtp-url", "smtp://ann:pa55word@"+nowhere)
	tenant := harness.NewTenant(t, s, "Doctor")
	hub := harness.NewRawHub(t, s)
	hub.Enroll()
	hub.GoOnline()
	tenant.Add(hub.Serial)
	hub.EventsFrom("log-1", 1, 3)
	hub.WaitAck("log-1", 3)
	ask := func(args ...string) diagnosis {
		return diagnose(t, s, append(append([]string{}, generous...), args...)...)
	}

	t.Run("a healthy installation", func(t *testing.T) {
		d := diagnose(t, s, generous...)
		d.complete()
		for _, name := range hasAll {
			if name != "mail" { // its server does not exist
				d.says(name, "ok")
			}
		}
		d.says("broker", "ok", "nats-server ")
		d.says("sync", "ok", "every write")
		d.says("hubs", "ok", "1 of the 1 hubs")
		d.says("logs", "ok", "1 hub logs", hub.ID, "KV_idempotency")
		d.says("certificates", "ok", "the broker's certificate", "1 hubs have a certificate")
	})

	t.Run("exceeded limits", func(t *testing.T) {
		d := diagnose(
			t, s, "--disk-free", "100", "--open-files", "100000000", "--storage-used", "0.00000001",
			"--connections", "64", "--certificate-days", "4000", "--sync-time", "1ns",
			"--clock-skew", "1m",
		)
		d.complete()
		d.says("disk", "wrong", "free")
		d.says("open_files", "wrong", "needs 100000000")
		d.says("broker", "wrong", "of the")
		d.says("postgres", "wrong", "connections are free")
		d.says("certificates", "wrong", "the broker's certificate expires in", hub.ID)
		d.says("sync", "warning", "to sync a small file")
	})

	t.Run("certificates", func(t *testing.T) {
		d := ask(
			"--certificate", newCertificate(t, time.Now().Add(-time.Hour)), "--certificate",
			newCertificate(t, time.Now().Add(3*24*time.Hour)),
		)
		d.says("certificates", "wrong", "expired on", "expires in 2 days")
		other := newCertificate(t, time.Now().Add(5*365*24*time.Hour))
		ask(
			"--ca-cert", other,
		).says("certificates", "wrong", "hubs reject the broker's certificate", "another authority")
		key := filepath.Join(s.Dir, "ca", "ca-key.pem")
		if err := os.Chmod(key, 0o644); err != nil {
			t.Fatal(err)
		}
		ask().says("certificates", "wrong", "can be read by others")
		if err := os.Chmod(key, 0o600); err != nil {
			t.Fatal(err)
		}
		ask("--ca-cert", key).says("certificates", "wrong", "contains no certificate")
	})

	t.Run("clocks", func(t *testing.T) {
		file := filepath.Join(s.Dir, "service.json")
		if err := os.Chtimes(file, time.Now(), time.Now().Add(2*time.Hour)); err != nil {
			t.Fatal(err)
		}
		ask().says("clock", "wrong", "service.json has a time stamp")
		if err := os.Chtimes(file, time.Now(), time.Now()); err != nil {
			t.Fatal(err)
		}
		ask().says("clock", "ok", "the broker's", "the database", "the file system")
	})

	t.Run("unreadable files", func(t *testing.T) {
		for name, component := range map[string]string{
			"service.json": "service", "postgres.json": "postgres",
			"nats-credentials.json": "broker",
		} {
			file := filepath.Join(s.Dir, name)
			kept, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte("{"), 0o600); err != nil {
				t.Fatal(err)
			}
			d := ask()
			if err := os.WriteFile(file, kept, 0o600); err != nil {
				t.Fatal(err)
			}
			d.complete()
			if c := d.components[component]; c.Verdict != "warning" && c.Verdict != "unknown" ||
				!strings.Contains(c.Detail, name) {
				t.Errorf(
					"damaged %s: got %+v, want a warning or unknown that names the file", name, c,
				)
			}
			d.says("disk", "ok")
		}
	})

	t.Run("the database", func(t *testing.T) {
		latin, reading := newDatabase(
			t, s, "latin", "ENCODING 'SQL_ASCII' TEMPLATE template0",
		), newDatabase(t, s, "reading", "")
		execute(
			t, databaseURL(t, s), "ALTER DATABASE reading SET default_transaction_read_only = on",
		)
		ask("--postgres-url", latin).says("postgres", "wrong", "its encoding is SQL_ASCII")
		ask("--postgres-url", reading).says("postgres", "wrong", "rejects writes")
		ask(
			"--postgres-url", "postgres://ann:pa55word@"+nowhere+"/x",
		).says("postgres", "wrong", "does not answer")
		ask(
			"--postgres-url", "postgres://ann:pa55word@:x/%zz",
		).says("postgres", "wrong", "is not like")
	})

	t.Run("projections", func(t *testing.T) {
		s.For(t).CLI("projections", "stop", "directory", "--why", "a trial")
		ask().says("projections", "warning", "directory at", "is stopped", "a trial")
		s.For(t).CLI("projections", "resume", "directory")
		ask().says("projections", "ok", "directory at", "presence at")
	})

	t.Run("mail", func(t *testing.T) {
		ask().says("mail", "wrong", "cannot be used", nowhere)
		tenant.For(t).
			Must("POST", "/invitations", map[string]string{"email": "bea@example.com"}, 201)
		ask("--mail-age", "1ns").says("mail", "wrong", "1 mails wait")
		ask("--smtp-url", "smtp://ann:pa55word@").says("mail", "wrong", "--smtp-url")
	})

	t.Run("hubs that flap", func(t *testing.T) {
		for range 4 {
			hub.Disconnect()
			hub.GoOnline()
		}
		streamstest.Eventually(t, "the hub's log says that it was disconnected four times",
			func() bool {
				return diagnose(t, s, "--flaps", "4").components["hubs"].Verdict == "warning"
			},
		)
		d := ask("--flaps", "4")
		d.says("hubs", "warning", "1 hubs flap", hub.ID+" 4 times", "client closed")
		ask("--flaps", "5").says("hubs", "ok", "none was disconnected 5 times")
	})

	t.Run("a stream that is nearly full", func(t *testing.T) {
		fillStream(t, s)
		ask().says("logs", "wrong", "stream SMALL has 19 of at most 20 messages")
	})

	t.Run("an external broker", func(t *testing.T) {
		credentials := filepath.Join(s.Dir, "nats-credentials.json")
		elsewhere := &harness.Service{Dir: filepath.Join(t.TempDir(), "none")}
		d := diagnose(
			t,
			elsewhere,
			append(generous, "--nats-url", "nats://"+s.NATS, "--nats-credentials", credentials)...)
		d.complete()
		for _, name := range []string{"service", "disk", "open_files", "postgres", "projections"} {
			d.says(name, "skipped")
		}
		d.says("broker", "ok")
		d.says("hubs", "ok", "hubs that have ever connected")
		d = diagnose(
			t,
			elsewhere,
			append(generous, "--nats-url", "nats://"+nowhere, "--nats-credentials", credentials)...)
		d.complete()
		d.says("broker", "wrong", "cannot be reached at nats://"+nowhere)
	})

	t.Run("an unknown event", func(t *testing.T) {
		poison(t, s)
		streamstest.Eventually(t, "the unknown event stops the projection", func() bool {
			return ask().components["projections"].Verdict == "wrong"
		})
		d := ask()
		d.says("projections", "wrong", "directory at", "is stopped", "no.such_fact")
		if advice := d.components["projections"].Advice; len(advice) != 1 ||
			!strings.Contains(advice[0], "hubcloud projections skip") {
			t.Errorf("advice: got %q, want to skip the event", advice)
		}
	})
}

// TestDoctorOfAServiceThatIsDown diagnoses a data directory before the first start, while the
// service hangs, after SIGKILL, and after an orderly stop.
func TestDoctorOfAServiceThatIsDown(t *testing.T) {
	t.Parallel()
	empty := diagnose(t, &harness.Service{Dir: filepath.Join(t.TempDir(), "none")}, generous...)
	empty.complete()
	empty.says("service", "wrong", "there is no data directory")
	empty.says("broker", "unknown")

	s := harness.Start(t, "--environment", "live", "--sync", "2m")
	d := diagnose(t, s, generous...)
	d.says("sync", "warning", "a power cut can lose")
	d.says("mail", "warning", "there is no mail server")

	if err := syscall.Kill(s.PID(), syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	d = diagnose(t, s, generous...)
	if err := syscall.Kill(s.PID(), syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	d.complete()
	d.says("service", "wrong", "uses the data directory and does not answer")
	d.says("broker", "wrong", "cannot be reached")
	d.says("disk", "ok")
	d.says("postgres", "ok") // a separate process
	d.says("hubs", "unknown")

	s.Kill()
	d = diagnose(t, s, generous...)
	d.complete()
	d.says("service", "wrong", "was killed")
	d.says("sync", "warning", "when it ran")

	s.Begin()
	s.Stop()
	d = diagnose(t, s, generous...)
	d.complete()
	d.says("service", "wrong", "no service runs on", "was started")
	d.says("disk", "ok", "free")
	d.says("open_files", "ok", "a service started from here")
	d.says("certificates", "ok", "the authority is valid until")
	d.says("postgres", "unknown", "runs only while the service does")
}

// beforeDetail matches the verdict and the component of a line.
var beforeDetail = regexp.MustCompile(`^\S+ +\S+ +`)

// TestDoctorForPeople tests the doctor's output without --json.
func TestDoctorForPeople(t *testing.T) {
	t.Parallel()
	out, stderr, code := harness.RunBinary(
		t, "doctor", "--data-dir", filepath.Join(t.TempDir(), "none"),
	)
	if code != 1 || stderr != "" {
		t.Errorf("exit code %d, %s", code, stderr)
	}
	column := -1
	for line := range strings.Lines(out) {
		if advice := strings.Index(line, "→ "); strings.HasPrefix(line, " ") {
			if advice != column {
				t.Errorf("advice: want it below the detail, in column %d: %s", column, line)
			}
			continue
		}
		if at := len(beforeDetail.FindString(line)); column == -1 {
			column = at
		} else if at != column {
			t.Errorf("line: not aligned with the one above: %s", line)
		}
	}
	if !strings.Contains(out, "→ name the service's with --data-dir") {
		t.Errorf("no advice:\n%s", out)
	}
	if out, stderr, code := harness.RunBinary(t, "doctor", "--disk-free", "101"); code != 2 ||
		!strings.Contains(stderr, "--disk-free") {
		t.Errorf("exit code %d: %s%s", code, out, stderr)
	}
}
