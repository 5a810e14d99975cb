package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hubcloud/streams"
	"hubcloud/streams/streamstest"
)

// configure runs broker-config and returns its output.
func configure(t *testing.T, args ...string) (stdout, stderr string) {
	t.Helper()
	out, errs, code := run(t, append([]string{"broker-config"}, args...)...)
	if code != exitOK {
		t.Fatalf("broker-config %v: exit code %d: %s", args, code, errs)
	}
	return out, errs
}

// The files are readable by their owner only, the output contains no secret, and a second run keeps
// the secrets that servers and service share.
func TestBrokerConfig(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "broker")
	args := []string{
		"--nodes",
		"nats-1,nats-2,nats-3",
		"--mqtt-hosts",
		"hubs.example.org",
		"--shards",
		"2",
		"--out",
		dir,
	}
	stdout, stderr := configure(t, args...)
	first, err := streams.ReadCredentials(filepath.Join(dir, "nats-credentials.json"))
	streamstest.Must(t, err)
	if first.Shards != 2 || first.URL != "tls://nats-1:4222,tls://nats-2:4222,tls://nats-3:4222" {
		t.Errorf(
			"credentials have %d shards at %s, want 2 at the three nodes", first.Shards, first.URL,
		)
	}
	routes, key := contentOf(t, dir, "routes.conf"), contentOf(t, dir, "broker-key.pem")
	for _, secret := range []string{
		first.IssuerSeed, first.Users[streams.AccountSys].Password,
		first.Users[streams.AccountCloud].Password, routes, key,
	} {
		if strings.Contains(stdout+stderr, strings.TrimSpace(secret)) {
			t.Errorf("the output contains the secret %q", secret)
		}
	}
	if stdout != contentOf(t, dir, "nats.conf") {
		t.Error("the printed configuration differs from nats.conf")
	}
	err = filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has the mode %v, want none for group and others", path, info.Mode())
		}
		return err
	})
	streamstest.Must(t, err)
	stdout, _ = configure(t, append(args, "--shards", "0", "--json")...)
	var said map[string]string
	if err := json.Unmarshal([]byte(stdout), &said); err != nil {
		t.Fatalf("%q: %v", stdout, err)
	}
	if said["config"] != filepath.Join(dir, "nats.conf") || said["certificate_expires_at"] == "" {
		t.Errorf("--json printed %v", said)
	}
	again, err := streams.ReadCredentials(said["credentials"])
	streamstest.Must(t, err)
	if again.IssuerSeed != first.IssuerSeed ||
		again.Users[streams.AccountCloud] != first.Users[streams.AccountCloud] ||
		again.Authority != first.Authority {
		t.Error("the second run changed the credentials")
	}
	if contentOf(t, dir, "routes.conf") != routes || contentOf(t, dir, "broker-key.pem") == key {
		t.Error("the second run must keep the routes' password and renew the certificate")
	}

	// Without the credentials there are new passwords, but as many shards as before.
	streamstest.Must(t, os.Remove(said["credentials"]))
	configure(t, append(args, "--shards", "0")...)
	renewed, err := streams.ReadCredentials(said["credentials"])
	streamstest.Must(t, err)
	if renewed.Shards != first.Shards ||
		renewed.Users[streams.AccountCloud] == first.Users[streams.AccountCloud] {
		t.Errorf(
			"without the credentials: %d shards, want %d and new passwords", renewed.Shards,
			first.Shards,
		)
	}

	_, errs, code := run(t, append([]string{"broker-config"}, append(args, "--shards", "3")...)...)
	if code != exitUsage {
		t.Errorf("another number of shards: exit code %d: %s", code, errs)
	}
}

func contentOf(t *testing.T, dir, name string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(dir, name))
	streamstest.Must(t, err)
	return string(content)
}
