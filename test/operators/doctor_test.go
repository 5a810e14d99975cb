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

// TestDoctor breaks one component of a running installation after the other. The doctor must find
// each fault.
func TestDoctor(t *testing.T) {
	t.Parallel()
	nowhere := streamstest.FreeAddress(t)
	s := harness.Start(t, "--smtp-url", "smtp://ann:pa55word@"+nowhere)
	tenant := harness.NewTenant(t, s, "Doctor")
	hub := harness.NewRawHub(t, s)
	hub.Enroll()
	hub.GoOnline()
	tenant.Add(hub.Serial)
	hub.EventsFrom("log-1", 1, 3)
	hub.WaitAck("log-1", 3)
	doctor := func(args ...string) diagnosis {
		return diagnose(t, s, append(append([]string{}, generous...), args...)...)
	}

	t.Run("a healthy installation", func(t *testing.T) {
		var d diagnosis
		streamstest.Eventually(t, "the read models are complete", func() bool {
			d = diagnose(t, s, generous...)
			return d.components["projections"].Verdict == "ok"
		})
		d.expectComplete()
		for _, name := range allComponents {
			if name != "mail" { // its server does not exist
				d.expect(name, "ok")
			}
		}
		d.expect("broker", "ok", "nats-server ")
		d.expect("sync", "ok", "every write")
		d.expect("hubs", "ok", "1 of the 1 hubs")
		d.expect("logs", "ok", "1 hub logs", hub.ID, "KV_idempotency")
		d.expect("journal", "ok", "journal 0 ends at commit", "its writer answers", "room for")
		d.expect("certificates", "ok", "the broker's certificate", "1 hubs have a certificate")
	})

	t.Run("exceeded limits", func(t *testing.T) {
		d := diagnose(
			t, s, "--disk-free", "100", "--open-files", "100000000", "--storage-used", "0.00000001",
			"--connections", "64", "--certificate-days", "4000", "--sync-time", "1ns",
			"--clock-skew", "1m",
		)
		d.expectComplete()
		d.expect("disk", "wrong", "free")
		d.expect("open_files", "wrong", "needs 100000000")
		d.expect("broker", "wrong", "of the")
		d.expect("postgres", "wrong", "connections are free")
		d.expect("certificates", "wrong", "the broker's certificate expires in", hub.ID)
		d.expect("sync", "warning", "to sync a small file")
	})

	t.Run("certificates", func(t *testing.T) {
		d := doctor(
			"--certificate", newCertificate(t, time.Now().Add(-time.Hour)), "--certificate",
			newCertificate(t, time.Now().Add(3*24*time.Hour)),
		)
		d.expect("certificates", "wrong", "expired on", "expires in 2 days")
		other := newCertificate(t, time.Now().Add(5*365*24*time.Hour))
		doctor(
			"--ca-cert", other,
		).expect(
			"certificates", "wrong", "hubs reject the broker's certificate", "another authority",
		)
		key := filepath.Join(s.Dir, "ca", "ca-key.pem")
		harness.Must(t, os.Chmod(key, 0o644))
		doctor().expect("certificates", "wrong", "can be read by others")
		harness.Must(t, os.Chmod(key, 0o600))
		doctor("--ca-cert", key).expect("certificates", "wrong", "contains no certificate")
	})

	t.Run("clocks", func(t *testing.T) {
		file := filepath.Join(s.Dir, "service.json")
		harness.Must(t, os.Chtimes(file, time.Now(), time.Now().Add(2*time.Hour)))
		doctor().expect("clock", "wrong", "service.json has a time stamp")
		harness.Must(t, os.Chtimes(file, time.Now(), time.Now()))
		doctor().expect("clock", "ok", "the broker's", "the database", "the file system")
	})

	t.Run("unreadable files", func(t *testing.T) {
		for name, component := range map[string]string{
			"service.json": "service", "postgres.json": "postgres",
		} {
			file := filepath.Join(s.Dir, name)
			kept, err := os.ReadFile(file)
			harness.Must(t, err)
			harness.Must(t, os.WriteFile(file, []byte("{"), 0o600))
			d := doctor()
			harness.Must(t, os.WriteFile(file, kept, 0o600))
			d.expectComplete()
			if c := d.components[component]; c.Verdict != "warning" && c.Verdict != "unknown" ||
				!strings.Contains(c.Detail, name) {
				t.Errorf(
					"damaged %s: got %+v, want a warning or unknown that names the file", name, c,
				)
			}
			d.expect("disk", "ok")
		}
	})

	t.Run("the database", func(t *testing.T) {
		latin, reading := newDatabase(
			t, s, "latin", "ENCODING 'SQL_ASCII' TEMPLATE template0",
		), newDatabase(t, s, "reading", "")
		execute(
			t, databaseURL(t, s), "ALTER DATABASE reading SET default_transaction_read_only = on",
		)
		doctor("--postgres-url", latin).expect("postgres", "wrong", "its encoding is SQL_ASCII")
		doctor("--postgres-url", reading).expect("postgres", "wrong", "rejects writes")
		doctor(
			"--postgres-url", "postgres://ann:pa55word@"+nowhere+"/x",
		).expect("postgres", "wrong", "does not answer")
		doctor(
			"--postgres-url", "postgres://ann:pa55word@:x/%zz",
		).expect("postgres", "wrong", "is not like")
	})

	t.Run("projections", func(t *testing.T) {
		s.For(t).CLI("projections", "stop", "directory", "--why", "a trial")
		doctor().expect("projections", "warning", "directory at", "is stopped", "a trial")
		s.For(t).CLI("projections", "resume", "directory")
		doctor().expect("projections", "ok", "directory at", "presence at")
	})

	t.Run("mail", func(t *testing.T) {
		doctor().expect("mail", "wrong", "cannot be used", nowhere)
		tenant.For(t).
			Must("POST", "/invitations", map[string]string{"email": "bea@example.com"}, 201)
		doctor("--mail-age", "1ns").expect("mail", "wrong", "2 mails wait") // the owner's of the new organization, too
		doctor("--smtp-url", "smtp://ann:pa55word@").expect("mail", "wrong", "--smtp-url")
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
		d := doctor("--flaps", "4")
		d.expect("hubs", "warning", "1 hubs flap", hub.ID+" 4 times", "client closed")
		doctor("--flaps", "5").expect("hubs", "ok", "none was disconnected 5 times")
	})

	t.Run("a stream that is nearly full", func(t *testing.T) {
		fillStream(t, s)
		doctor().expect("logs", "wrong", "stream SMALL has 19 of at most 20 messages")
	})

	t.Run("an external broker", func(t *testing.T) {
		credentials := filepath.Join(s.Dir, "nats-credentials.json")
		elsewhere := &harness.Service{Dir: filepath.Join(t.TempDir(), "none")}
		d := diagnose(
			t,
			elsewhere,
			append(generous, "--nats-url", "nats://"+s.NATS, "--nats-credentials", credentials)...)
		d.expectComplete()
		for _, name := range []string{
			"service", "disk", "open_files", "postgres", "projections", "hubs", "journal",
		} {
			d.expect(name, "skipped")
		}
		d.expect("broker", "ok")
		d = diagnose(t, elsewhere, append(generous, "--admin", s.Admin)...)
		d.expectComplete()
		d.expect("postgres", "skipped")
		d.expect("broker", "ok", "nats-server ")
		d.expect("projections", "ok", "directory at")
		d.expect("hubs", "ok", "hubs that have ever connected")
		d.expect("journal", "ok", "its writer answers")
		d = diagnose(
			t,
			elsewhere,
			append(generous, "--nats-url", "nats://"+nowhere, "--nats-credentials", credentials)...)
		d.expectComplete()
		d.expect("broker", "wrong", "cannot be reached at nats://"+nowhere)
	})

	t.Run("an unknown event", func(t *testing.T) {
		poison(t, s)
		streamstest.Eventually(t, "the unknown event stops the projection", func() bool {
			return doctor().components["projections"].Verdict == "wrong"
		})
		d := doctor()
		d.expect("projections", "wrong", "directory at", "is stopped", "no.such_fact")
		advice := strings.Join(d.components["projections"].Advice, "; ")
		if !strings.Contains(advice, "hubcloud projections skip") {
			t.Errorf("advice: got %q, want to skip the event", advice)
		}
	})
}

// TestDoctorOfAServiceThatIsDown diagnoses a data directory before the first start, while the
// service hangs, after SIGKILL, and after an orderly stop.
func TestDoctorOfAServiceThatIsDown(t *testing.T) {
	t.Parallel()
	empty := diagnose(t, &harness.Service{Dir: filepath.Join(t.TempDir(), "none")}, generous...)
	empty.expectComplete()
	empty.expect("service", "wrong", "there is no data directory")
	empty.expect("broker", "unknown")

	s := harness.Start(t, "--environment", "live", "--sync", "2m")
	d := diagnose(t, s, generous...)
	d.expect("sync", "warning", "a power cut can lose")
	d.expect("mail", "warning", "there is no mail server")

	harness.Must(t, syscall.Kill(s.PID(), syscall.SIGSTOP))
	d = diagnose(t, s, generous...)
	harness.Must(t, syscall.Kill(s.PID(), syscall.SIGCONT))
	d.expectComplete()
	d.expect("service", "wrong", "uses the data directory and does not answer")
	d.expect("broker", "unknown")
	d.expect("disk", "ok")
	d.expect("postgres", "ok") // a separate process
	d.expect("hubs", "unknown")

	s.Kill()
	d = diagnose(t, s, generous...)
	d.expectComplete()
	d.expect("service", "wrong", "was killed")

	s.Begin()
	s.Stop()
	d = diagnose(t, s, generous...)
	d.expectComplete()
	d.expect("service", "wrong", "no service runs on", "the last one was stopped")
	d.expect("disk", "ok", "free")
	d.expect("certificates", "ok", "the authority is valid until")
	d.expect("postgres", "unknown", "runs only while the service does")
}

// beforeDetail matches the verdict and the component of a line.
var beforeDetail = regexp.MustCompile(`^\S+ +\S+ +`)

// TestDoctorTable tests the doctor's output without --json.
func TestDoctorTable(t *testing.T) {
	t.Parallel()
	out, stderr, code := harness.RunBinary(
		t, "doctor", "--data-dir", filepath.Join(t.TempDir(), "none"),
	)
	if code != 1 || stderr != "" {
		t.Errorf("got exit code %d, %s; want 1 and no errors", code, stderr)
	}
	column := -1
	for line := range strings.Lines(out) {
		if advice := strings.Index(line, "→ "); strings.HasPrefix(line, " ") {
			if advice != column {
				t.Errorf(
					"got advice in column %d, want %d, below the detail: %s", advice, column, line,
				)
			}
			continue
		}
		if at := len(beforeDetail.FindString(line)); column == -1 {
			column = at
		} else if at != column {
			t.Errorf("got a detail in column %d, want %d as above: %s", at, column, line)
		}
	}
	if !strings.Contains(out, "→ name the service's with --data-dir") {
		t.Errorf("got\n%s\nwant advice to name the service with --data-dir", out)
	}
	if out, stderr, code := harness.RunBinary(t, "doctor", "--disk-free", "101"); code != 2 ||
		!strings.Contains(stderr, "--disk-free") {
		t.Errorf("--disk-free 101: got exit code %d: %s%s; want 2", code, out, stderr)
	}
}
