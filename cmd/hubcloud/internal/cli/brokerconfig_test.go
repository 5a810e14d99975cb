package cli

import (
	"bytes"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"hubcloud/streams"
)

// configure runs broker-config and gives what it printed.
func configure(t *testing.T, args ...string) (stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	if code := Run(t.Context(), append([]string{
		"broker-config",
	}, args...), Streams{Out: &out, Err: &errs}); code != exitOK {
		t.Fatalf("broker-config %v: exit code %d: %s", args, code, &errs)
	}
	return out.String(), errs.String()
}

// TestBrokerConfig: what it writes is for its owner only, what it prints holds no secret, and a
// second run keeps what servers and service share.
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
	if err != nil {
		t.Fatal(err)
	}
	if first.Shards != 2 || first.URL != "tls://nats-1:4222,tls://nats-2:4222,tls://nats-3:4222" {
		t.Errorf("credentials are for %d shards at %s", first.Shards, first.URL)
	}
	routes, key := contentOf(t, dir, "routes.conf"), contentOf(t, dir, "broker-key.pem")
	for _, secret := range []string{
		first.IssuerSeed, first.Users[streams.AccountSys].Password,
		first.Users[streams.AccountCloud].Password, routes, key,
	} {
		if strings.Contains(stdout+stderr, strings.TrimSpace(secret)) {
			t.Errorf("a secret is printed: %q", secret)
		}
	}
	if stdout != contentOf(t, dir, "nats.conf") {
		t.Error("what is printed is another configuration than what is written")
	}
	err = filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has the mode %v", path, info.Mode())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	vouches(
		t, contentOf(t, dir, "ca.pem"), contentOf(t, dir, "broker.pem"), "nats-2",
		"hubs.example.org",
	)

	stdout, _ = configure(t, append(args, "--shards", "0", "--json")...)
	var said map[string]string
	if err := json.Unmarshal([]byte(stdout), &said); err != nil {
		t.Fatalf("%q: %v", stdout, err)
	}
	if said["config"] != filepath.Join(dir, "nats.conf") || said["certificate_expires_at"] == "" {
		t.Errorf("--json says %v", said)
	}
	again, err := streams.ReadCredentials(said["credentials"])
	if err != nil {
		t.Fatal(err)
	}
	if again.IssuerSeed != first.IssuerSeed ||
		again.Users[streams.AccountCloud] != first.Users[streams.AccountCloud] ||
		again.Authority != first.Authority {
		t.Error("a second run makes other credentials")
	}
	if contentOf(t, dir, "routes.conf") != routes || contentOf(t, dir, "broker-key.pem") == key {
		t.Error("a second run must keep the routes' password, and make another certificate")
	}

	var out, errs bytes.Buffer
	if code := Run(t.Context(), append([]string{
		"broker-config",
	}, append(args, "--shards", "3")...), Streams{Out: &out, Err: &errs}); code != exitUsage {
		t.Errorf("another number of shards: exit code %d: %s", code, &errs)
	}
}

func contentOf(t *testing.T, dir, name string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// vouches fails the test unless the authority vouches for the certificate under each of the names,
// as a server's and as a client's.
func vouches(t *testing.T, authority, certificate string, names ...string) {
	t.Helper()
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM([]byte(authority))
	block, _ := pem.Decode([]byte(certificate))
	leaf, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	for _, usage := range []x509.ExtKeyUsage{
		x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth,
	} {
		for _, name := range names {
			if _, err := leaf.Verify(x509.VerifyOptions{
				Roots: pool, DNSName: name, KeyUsages: []x509.ExtKeyUsage{usage},
			}); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	if !slices.Contains(leaf.DNSNames, "localhost") {
		t.Errorf("the certificate is for %v", leaf.DNSNames)
	}
}
