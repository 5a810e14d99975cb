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
	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/jsapi"
	"hubcloud/test/harness"
	"log/slog"
	"math/big"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// databaseURL returns the address of the service's database.
func databaseURL(t *testing.T, s *harness.Service) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(s.Dir, "postgres.json"))
	harness.Must(t, err)
	var database struct{ URL string }
	harness.Must(t, json.Unmarshal(text, &database))
	return database.URL
}

// newDatabase creates another database on the service's server and returns its address.
func newDatabase(t *testing.T, s *harness.Service, name, properties string) string {
	t.Helper()
	address := databaseURL(t, s)
	execute(t, address, fmt.Sprintf("CREATE DATABASE %s %s", name, properties))
	u, err := url.Parse(address)
	harness.Must(t, err)
	u.Path = "/" + name
	return u.String()
}

// execute runs a statement on a database.
func execute(t *testing.T, address, sql string, args ...any) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	conn, err := pgx.Connect(ctx, address)
	harness.Must(t, err)
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, sql, args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// connect connects to every account of the service's broker.
func connect(t *testing.T, s *harness.Service) *streams.Conns {
	t.Helper()
	credentials, err := streams.ReadCredentials(filepath.Join(s.Dir, "nats-credentials.json"))
	harness.Must(t, err)
	conns, err := streams.Connect(
		t.Context(), credentials, streams.WithLog(slog.New(slog.DiscardHandler)),
	)
	harness.Must(t, err)
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
	harness.Must(t, err)
	return seq
}

// fillStream creates a stream with a limit and fills it.
func fillStream(t *testing.T, s *harness.Service) {
	t.Helper()
	js, err := jetstream.New(connect(t, s).Cloud)
	harness.Must(t, err)
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

// newCertificate writes a file with a certificate that expires at end.
func newCertificate(t *testing.T, end time.Time) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	harness.Must(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(
			7,
		), Subject: pkix.Name{CommonName: "trial"}, NotBefore: time.Now().Add(-48 * time.Hour),
		NotAfter: end,
		IsCA:     true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	harness.Must(t, err)
	path := filepath.Join(t.TempDir(), "certificate.pem")
	harness.Must(t, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{
		Type: "CERTIFICATE", Bytes: der,
	}), 0o600))
	return path
}
