package cli

import (
	"bytes"
	"context"
	"net"
	"strings"
	"testing"

	"hubcloud/cmd/hubcloud/internal/installation"
)

// A usage error is one line that names the mistake, and exit code 2.
func TestUsageErrors(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	_, busy, _ := net.SplitHostPort(listener.Addr().String()) // as the listener wrote it
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"sreve"}, "sreve"},
		{[]string{"serve", "--htpp", ":1"}, "--htpp"},
		{[]string{"serve", "--http", "nowhere"}, "--http"},
		{[]string{"serve", "--event-retention", "soon"}, "--event-retention"},
		{[]string{"serve", "--event-retention", "1ms"}, "--event-retention"},
		{[]string{"serve", "--sync", "sometimes"}, "--sync"},
		{[]string{"serve", "--roles", "api,cook"}, "cook"},
		{[]string{"serve", "--environment", "test"}, "--environment"},
		{[]string{"serve", "--nats-url", "nats://127.0.0.1:1"}, "--nats-credentials"},
		{
			[]string{"serve", "--nats-url", "nats://127.0.0.1:1", "--nats-credentials", "c.json"},
			"--ca-cert",
		},
		{
			[]string{
				"serve", "--nats-url", "nats://127.0.0.1:1", "--nats-credentials", "c.json",
				"--ca-cert", "c.pem", "--ca-key", "k.pem",
			},
			"--public-mqtt",
		},
		{[]string{"serve", "--postgres-url", "secret"}, "--postgres-url"},
		{[]string{"serve", "--http", "127.0.0.1:99999"}, "--http"},
		{[]string{"serve", "--public-mqtt", "example.org:mqtt"}, "--public-mqtt"},
		{[]string{"serve", "--roles", ""}, "--roles"},
		{[]string{"serve", "--ca-cert", "ca.pem"}, "--ca-key"},
		{[]string{"serve", "--rate", "0"}, "--rate"},
		{[]string{"serve", "--tls-cert", "c.pem"}, "--tls-key"},
		{[]string{"serve", "--tls-cert", "no.pem", "--tls-key", "no.pem"}, "no.pem"},
		{[]string{"serve", "--acme-domain", "hubs.example.org"}, "--acme-accept-terms"},
		{[]string{"serve", "--acme-accept-terms"}, "--acme-domain"},
		{[]string{"serve", "--acme-accept-terms", "--acme-domain", "*.example.org"}, "wildcard"},
		{[]string{"serve", "--acme-accept-terms", "--acme-domain", "192.0.2.1"}, "--acme-domain"},
		{
			[]string{
				"serve", "--acme-accept-terms", "--acme-domain", "hubs.example.org",
				"--acme-directory", "http://127.0.0.1/dir",
			},
			"--acme-directory",
		},
		{
			[]string{
				"serve", "--acme-accept-terms", "--acme-domain", "hubs.example.org", "--acme-ca",
				"/nowhere",
			},
			"/nowhere",
		},
		{
			[]string{
				"serve", "--acme-accept-terms", "--acme-domain", "hubs.example.org",
				"--public-url", "http://hubs.example.org",
			},
			"https://",
		},
		{[]string{"serve", "--http-redirect", ":80"}, "--http-redirect"},
		{[]string{"serve", "--shards", "257"}, "1 to 256"},
		{[]string{"broker-config", "--nodes", "a", "--out", "o", "--shards", "257"}, "1 to 256"},
		{[]string{"org", "create", "--name", "Acme"}, "--owner-email"},
		{[]string{"key", "create", "--org", "x"}, "--scope"},
		{[]string{"key", "create", "--org", "x", "--scope", "everything"}, "everything"},
		{
			[]string{"key", "create", "--org", "x", "--all-scopes", "--scope", "sites:read"},
			"not both",
		},
		{[]string{"key", "revoke"}, "key-id"},
		{[]string{"inventory", "add", "--serial", "7"}, "--serial"},
		{[]string{"inventory", "generate", "--count", "0"}, "--count"},
		{[]string{"inventory", "generate", "--prefix", "Hub"}, "--prefix"},
		{
			[]string{
				"virtualhub", "--enroll", "http://127.0.0.1:1", "--serial", "x", "--secret", "y",
			},
			"serial",
		},
		{
			[]string{
				"virtualhub", "--enroll", "cloud", "--serial", "HUB-7K2M-Q4XD-93TA", "--secret",
				"y",
			},
			"--enroll",
		},
		{
			[]string{"virtualhub", "fleet", "--enroll", "cloud", "--inventory", "/dev/null"},
			"--enroll",
		},
		{
			[]string{
				"virtualhub", "fleet", "--enroll", "http://127.0.0.1:1", "--inventory", "/nowhere",
			},
			"/nowhere",
		},
		{
			[]string{
				"virtualhub", "--enroll", "http://127.0.0.1:1", "--serial", "HUB-7K2M-Q4XD-93TA",
				"--secret", "y",
			},
			"--secret",
		},
		{
			[]string{
				"virtualhub", "--enroll", "http://127.0.0.1:1", "--serial", "HUB-7K2M-Q4XD-93TA",
				"--secret", strings.Repeat("A", 43), "--fault", "tired",
			},
			"--fault: \"tired\" is not one of jammed,",
		},
		{
			[]string{
				"virtualhub", "--enroll", "http://127.0.0.1:1", "--serial", "HUB-7K2M-Q4XD-93TA",
				"--secret", strings.Repeat("A", 43), "--devices", "/nowhere",
			},
			"--devices",
		},
		{[]string{"hub", "check", "--serial", "7"}, "--serial"},
		{[]string{"hub", "check", "--secret", "y"}, "--secret"},
		{[]string{"hub", "check", "--listen="}, "--listen"},
		{[]string{"hub", "check", "--listen", "0.0.0.0"}, "--listen"},
		{[]string{"hub", "check", "--http-port", busy, "--timeout", "1s"}, "--http-port"},
		{[]string{"hub", "check", "--mqtt-port", busy, "--timeout", "1s"}, "--mqtt-port"},
		{[]string{"hub", "check", "--tls-cert", "c.pem"}, "--tls-key"},
		{[]string{"hub", "check", "--tls-cert", "no.pem", "--tls-key", "no.pem"}, "no.pem"},
		{[]string{"hub", "check", "--only", "hello"}, "--only"},
		{[]string{"hub", "check", "--http-port", "70000"}, "--http-port"},
		{[]string{"hub", "check", "--mqtt-port=-1"}, "--mqtt-port"},
		{[]string{"hub", "check", "--listen", "http://10.0.0.1"}, "--listen"},
		{[]string{"hub", "check", "--timeout", "0s"}, "--timeout"},
		{[]string{"hub", "check", "--commands=-1"}, "--commands"},
		{[]string{"hub", "check", "--junit", "/nowhere/report.xml"}, "--junit"},
		{[]string{"hub", "check", "--device", "lock"}, "--device"},
	} {
		var out, errs bytes.Buffer
		code := Run(context.Background(), c.args, Output{Out: &out, Err: &errs})
		if code != exitUsage || !strings.Contains(errs.String(), c.says) ||
			strings.Count(errs.String(), "\n") != 1 {
			t.Errorf(
				"hubcloud %s: exit code %d, printed %q", strings.Join(c.args, " "), code,
				errs.String(),
			)
		}
	}
}

// A command without a running service reports how to start one.
func TestNoServiceRuns(t *testing.T) {
	t.Parallel()
	var out, errs bytes.Buffer
	code := Run(
		context.Background(), []string{"inventory", "generate", "--data-dir", t.TempDir()},
		Output{Out: &out, Err: &errs},
	)
	if code != exitFailed || !strings.Contains(errs.String(), "hubcloud serve") {
		t.Errorf("exit code %d, printed %q", code, errs.String())
	}
}

func TestHelpShowsDefaultsAndEnvironment(t *testing.T) {
	t.Parallel()
	var out, errs bytes.Buffer
	if code := Run(context.Background(), []string{
		"serve", "--help",
	}, Output{Out: &out, Err: &errs}); code != exitOK {
		t.Fatalf("exit code %d, printed %q", code, errs.String())
	}
	for _, want := range []string{
		"--event-retention=24h", "$HUBCLOUD_EVENT_RETENTION", "--http=\":8080\"",
		"--environment=\"live\"", "--sync=\"always\"",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the help of serve has no %s", want)
		}
	}
}

func TestVersion(t *testing.T) {
	t.Parallel()
	version := installation.Program()
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--version"}, "hubcloud " + version.Version + "\n"},
		{[]string{"version"}, "schema   " + version.Schema + "\n"},
		{[]string{"version", "--json"}, `"go":"` + version.Go + `"`},
	} {
		var out, errs bytes.Buffer
		code := Run(t.Context(), c.args, Output{Out: &out, Err: &errs})
		if code != exitOK || !strings.Contains(out.String(), c.want) || errs.Len() > 0 {
			t.Errorf(
				"hubcloud %s: got exit code %d, output %q and errors %q, want %q",
				strings.Join(c.args, " "), code, out.String(), errs.String(), c.want,
			)
		}
	}
}
