package cli

import (
	"bytes"
	"net"
	"strings"
	"testing"

	"hubcloud/cmd/hubcloud/internal/installation"
	"hubcloud/streams/streamstest"
)

// run runs a command and returns what it printed, and its exit code.
func run(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, errs bytes.Buffer
	code = Run(t.Context(), args, Output{Out: &out, Err: &errs})
	return out.String(), errs.String(), code
}

// said is run without a difference between what goes to stdout and to stderr.
func said(t *testing.T, args ...string) (printed string, code int) {
	t.Helper()
	out, errs, code := run(t, args...)
	return out + errs, code
}

// usageErrors runs commands, of words between single spaces. Each must end with exit code 2, and
// print one line that has the second text.
func usageErrors(t *testing.T, commands [][2]string) {
	t.Helper()
	for _, c := range commands {
		_, errs, code := run(t, strings.Split(c[0], " ")...)
		if code != exitUsage || !strings.Contains(errs, c[1]) || strings.Count(errs, "\n") != 1 {
			t.Errorf("hubcloud %s: exit code %d, printed %q, want %q", c[0], code, errs, c[1])
		}
	}
}

func TestUsageErrors(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	streamstest.Must(t, err)
	defer listener.Close()
	_, busy, _ := net.SplitHostPort(listener.Addr().String()) // as the listener wrote it
	const broker = "--nats-url nats://127.0.0.1:1"
	const acme = "--acme-accept-terms --acme-domain hubs.example.org"
	const hub = "virtualhub --enroll http://127.0.0.1:1 --serial HUB-7K2M-Q4XD-93TA --secret "
	secret := strings.Repeat("A", 43)
	usageErrors(t, [][2]string{
		{"sreve", "sreve"},
		{"serve --htpp :1", "--htpp"},
		{"serve --http nowhere", "--http"},
		{"serve --event-retention soon", "--event-retention"},
		{"serve --event-retention 1ms", "--event-retention"},
		{"serve --sync sometimes", "--sync"},
		{"serve --roles api,cook", "cook"},
		{"serve --environment test", "--environment"},
		{"serve " + broker, "--nats-credentials"},
		{"serve " + broker + " --nats-credentials c.json", "--ca-cert"},
		{"serve " + broker + " --nats-credentials c.json --ca-cert c.pem --ca-key k.pem", "--public-mqtt"},
		{"serve --postgres-url secret", "--postgres-url"},
		{"serve --http 127.0.0.1:99999", "--http"},
		{"serve --public-mqtt example.org:mqtt", "--public-mqtt"},
		{"serve --roles ", "--roles"},
		{"serve --ca-cert ca.pem", "--ca-key"},
		{"serve --rate 0", "--rate"},
		{"serve --tls-cert c.pem", "--tls-key"},
		{"serve --tls-cert no.pem --tls-key no.pem", "no.pem"},
		{"serve --acme-domain hubs.example.org", "--acme-accept-terms"},
		{"serve --acme-accept-terms", "--acme-domain"},
		{"serve --acme-accept-terms --acme-domain *.example.org", "wildcard"},
		{"serve --acme-accept-terms --acme-domain 192.0.2.1", "--acme-domain"},
		{"serve " + acme + " --acme-directory http://127.0.0.1/dir", "--acme-directory"},
		{"serve " + acme + " --acme-ca /nowhere", "/nowhere"},
		{"serve " + acme + " --public-url http://hubs.example.org", "https://"},
		{"serve --http-redirect :80", "--http-redirect"},
		{"serve --shards 257", "1 to 256"},
		{"broker-config --nodes a --out o --shards 257", "1 to 256"},
		{"org create --name Acme", "--owner-email"},
		{"key create --org x", "--scope"},
		{"key create --org x --scope everything", "everything"},
		{"key create --org x --all-scopes --scope sites:read", "not both"},
		{"key revoke", "key-id"},
		{"inventory add --serial 7", "--serial"},
		{"inventory generate --count 0", "--count"},
		{"inventory generate --prefix Hub", "--prefix"},
		{"virtualhub --enroll http://127.0.0.1:1 --serial x --secret y", "serial"},
		{"virtualhub --enroll cloud --serial HUB-7K2M-Q4XD-93TA --secret y", "--enroll"},
		{"virtualhub fleet --enroll cloud --inventory /dev/null", "--enroll"},
		{"virtualhub fleet --enroll http://127.0.0.1:1 --inventory /nowhere", "/nowhere"},
		{hub + "y", "--secret"},
		{hub + secret + " --fault tired", "--fault: \"tired\" is not one of jammed,"},
		{hub + secret + " --devices /nowhere", "--devices"},
		{"hub check --serial 7", "--serial"},
		{"hub check --secret y", "--secret"},
		{"hub check --listen=", "--listen"},
		{"hub check --listen 0.0.0.0", "--listen"},
		{"hub check --timeout 1s --http-port " + busy, "--http-port"},
		{"hub check --timeout 1s --mqtt-port " + busy, "--mqtt-port"},
		{"hub check --tls-cert c.pem", "--tls-key"},
		{"hub check --tls-cert no.pem --tls-key no.pem", "no.pem"},
		{"hub check --only hello", "--only"},
		{"hub check --http-port 70000", "--http-port"},
		{"hub check --mqtt-port=-1", "--mqtt-port"},
		{"hub check --listen http://10.0.0.1", "--listen"},
		{"hub check --timeout 0s", "--timeout"},
		{"hub check --commands=-1", "--commands"},
		{"hub check --junit /nowhere/report.xml", "--junit"},
		{"hub check --device lock", "--device"},
	})
}

// A command without a running service reports how to start one.
func TestNoServiceRuns(t *testing.T) {
	t.Parallel()
	_, errs, code := run(t, "inventory", "generate", "--data-dir", t.TempDir())
	if code != exitFailed || !strings.Contains(errs, "hubcloud serve") {
		t.Errorf("exit code %d, printed %q", code, errs)
	}
}

func TestHelpShowsDefaultsAndEnvironment(t *testing.T) {
	t.Parallel()
	out, errs, code := run(t, "serve", "--help")
	if code != exitOK {
		t.Fatalf("exit code %d, printed %q", code, errs)
	}
	for _, want := range []string{
		"--event-retention=24h", "$HUBCLOUD_EVENT_RETENTION", "--http=\":8080\"",
		"--environment=\"live\"", "--sync=\"always\"",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("the help of serve has no %s", want)
		}
	}
}

// Each long help text is that of a command.
func TestHelpTexts(t *testing.T) {
	t.Parallel()
	files, err := helpTexts.ReadDir("help")
	streamstest.Must(t, err)
	for _, file := range files {
		name := strings.TrimSuffix(file.Name(), ".txt")
		begin := helpText(name)[:25] // which are never wrapped
		command, _, _ := run(t, name, "--help")
		below, _, _ := run(t, append(strings.Split(name, "-"), "--help")...)
		if !strings.Contains(command+below, "\n"+begin) && name != "hubcloud" {
			t.Errorf("%s: no command has this text", file.Name())
		}
	}
}

func TestVersion(t *testing.T) {
	t.Parallel()
	version := installation.Program()
	for _, c := range [][2]string{
		{"--version", "hubcloud " + version.Version + "\n"},
		{"version", "schema   " + version.Schema + "\n"},
		{"version --json", `"go":"` + version.Go + `"`},
	} {
		out, errs, code := run(t, strings.Split(c[0], " ")...)
		if code != exitOK || !strings.Contains(out, c[1]) || errs != "" {
			t.Errorf("hubcloud %s: got exit code %d, %q and errors %q, want %q",
				c[0], code, out, errs, c[1])
		}
	}
}
