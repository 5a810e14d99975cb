package operators

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"log/slog"
	"math/big"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/jsapi"
	"hubcloud/streams/streamstest"
	"hubcloud/test/harness"
)

// component is one line of `hubcloud doctor --json`.
type component struct {
	Name    string   `json:"name"`
	OK      bool     `json:"ok"`
	Verdict string   `json:"verdict"`
	Detail  string   `json:"detail"`
	Advice  []string `json:"advice"`
}

// diagnosis is the doctor's output by component, and its exit code.
type diagnosis struct {
	t          *testing.T
	components map[string]component
	code       int
	text       string
}

// diagnose runs the doctor on a service and checks its output for consistency: it is quick, the
// exit code matches the verdicts, exactly the unhealthy components have advice, and it contains no
// secret.
func diagnose(t *testing.T, s *harness.Service, args ...string) diagnosis {
	t.Helper()
	began := time.Now()
	out, stderr, code := harness.RunBinary(
		t,
		append([]string{"doctor", "--json", "--data-dir", s.Dir}, args...)...)
	if took := time.Since(began); took > time.Minute { // five seconds on an idle machine
		t.Errorf("doctor took %s, want less than a minute", took)
	}
	d := diagnosis{t: t, components: map[string]component{}, code: code, text: out}
	unhealthy := false
	for line := range strings.Lines(out) {
		var c component
		if err := json.Unmarshal([]byte(line), &c); err != nil {
			t.Fatalf("%q: %v\n%s", line, err, stderr)
		}
		d.components[c.Name] = c
		unhealthy = unhealthy || !c.OK
		if c.Detail == "" ||
			c.OK != (c.Verdict == "ok" || c.Verdict == "warning" || c.Verdict == "skipped") {
			t.Errorf("%s", line)
		}
		if (c.Verdict != "ok" && c.Verdict != "skipped") != (len(c.Advice) > 0) &&
			c.Verdict != "skipped" {
			t.Errorf("want advice exactly for unhealthy components, got %s", line)
		}
	}
	if want := map[bool]int{false: 0, true: 1}[unhealthy]; code != want || stderr != "" {
		t.Errorf("got exit code %d, want %d: %s%s", code, want, out, stderr)
	}
	for _, secret := range secrets(t, s) {
		if strings.Contains(out, secret) {
			t.Errorf("output has a secret: %s", out)
		}
	}
	return d
}

// secrets returns the secrets in a data directory.
func secrets(t *testing.T, s *harness.Service) []string {
	t.Helper()
	all := []string{"pa55word"} // in the addresses of these tests
	credentials, err := streams.ReadCredentials(filepath.Join(s.Dir, "nats-credentials.json"))
	if err != nil {
		return all
	}
	for _, user := range credentials.Users {
		all = append(all, user.Password)
	}
	return append(all, credentials.IssuerSeed)
}

// says fails unless a component has the verdict and a detail with all of the texts.
func (d diagnosis) says(name, verdict string, texts ...string) {
	d.t.Helper()
	c, ok := d.components[name]
	if !ok || c.Verdict != verdict {
		d.t.Errorf("%s: want verdict %s, got %+v", name, verdict, c)
	}
	for _, text := range texts {
		if !strings.Contains(c.Detail, text) {
			d.t.Errorf("%s: want %q in the detail, got %s", name, text, c.Detail)
		}
	}
}

// hasAll has the components that are always reported.
var hasAll = []string{
	"service", "broker", "disk", "sync", "open_files", "clock", "certificates", "postgres",
	"projections", "mail", "hubs", "logs",
}

func (d diagnosis) complete() {
	d.t.Helper()
	for _, name := range hasAll {
		if _, ok := d.components[name]; !ok {
			d.t.Errorf("%s is missing: %s", name, d.text)
		}
	}
}

// generous has limits that a busy machine with a small disk does not reach.
var generous = []string{"--disk-free", "0", "--sync-time", "1m", "--clock-skew", "1m"}

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
				t.Errorf("%s: %+v", name, c)
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
			t.Errorf("%q", advice)
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

// newCertificate writes a file with a certificate that expires at end.
func newCertificate(t *testing.T, end time.Time) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(
			7,
		), Subject: pkix.Name{CommonName: "trial"}, NotBefore: time.Now().Add(-48 * time.Hour),
		NotAfter: end,
		IsCA:     true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "certificate.pem")
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{
		Type: "CERTIFICATE", Bytes: der,
	}), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// databaseURL returns the address of the service's database.
func databaseURL(t *testing.T, s *harness.Service) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(s.Dir, "postgres.json"))
	if err != nil {
		t.Fatal(err)
	}
	var database struct{ URL string }
	if err := json.Unmarshal(text, &database); err != nil {
		t.Fatal(err)
	}
	return database.URL
}

// newDatabase creates another database on the service's server and returns its address.
func newDatabase(t *testing.T, s *harness.Service, name, properties string) string {
	t.Helper()
	address := databaseURL(t, s)
	execute(t, address, fmt.Sprintf("CREATE DATABASE %s %s", name, properties))
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	u.Path = "/" + name
	return u.String()
}

func execute(t *testing.T, address, sql string, args ...any) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	conn, err := pgx.Connect(ctx, address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, sql, args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// connect connects to every account of the service's broker.
func connect(t *testing.T, s *harness.Service) *streams.Conns {
	t.Helper()
	credentials, err := streams.ReadCredentials(filepath.Join(s.Dir, "nats-credentials.json"))
	if err != nil {
		t.Fatal(err)
	}
	conns, err := streams.Connect(
		t.Context(), credentials, streams.WithLog(slog.New(slog.DiscardHandler)),
	)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conns.Close)
	return conns
}

// poison appends an event of an unknown type to the directory and returns its sequence.
func poison(t *testing.T, s *harness.Service) uint64 {
	t.Helper()
	org := domain.NewUUIDv7(time.Now(), [10]byte{1})
	event := fmt.Appendf(
		nil,
		`{"id":"01J00000000000000000000000","type":"no.such_fact","v":1,"at":"2026-01-02T03:04:05Z","actor":{"kind":"service"},"data":{"org_id":%q}}`,
		org,
	)
	seq, err := jsapi.Append(
		t.Context(), connect(t, s).Cloud, &nats.Msg{Subject: streams.OrgSubject(org), Data: event},
	)
	if err != nil {
		t.Fatal(err)
	}
	return seq
}

// fillStream creates a stream with a limit and fills it.
func fillStream(t *testing.T, s *harness.Service) {
	t.Helper()
	js, err := jetstream.New(connect(t, s).Cloud)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{
		Name: "SMALL", Subjects: []string{"small"}, MaxMsgs: 20,
	}); err != nil {
		t.Fatal(err)
	}
	for range 19 {
		if _, err := js.Publish(t.Context(), "small", nil); err != nil {
			t.Fatal(err)
		}
	}
}
