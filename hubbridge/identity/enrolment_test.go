package identity_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"hubcloud/domain"
	"hubcloud/hubbridge/identity"
	"hubcloud/hubbridge/protocol"
	"hubcloud/streams/streamstest"
)

// memoryDirectory is a directory in memory. It counts its reads.
type memoryDirectory struct {
	mu    sync.Mutex
	hubs  map[domain.HubID]domain.HubState
	reads int
	err   error
}

func (k *memoryDirectory) Hub(
	_ context.Context, hub domain.HubID,
) (domain.HubState, uint64, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.reads++
	return k.hubs[hub], 1, k.err
}

func (k *memoryDirectory) IssueCertificate(
	_ context.Context, o domain.Origin, hub domain.HubID, c domain.IssueCertificate,
) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if o.Actor != (domain.Actor{Kind: domain.ActorHub, ID: string(hub)}) || o.At.IsZero() {
		return errors.New("origin: must be the hub, with a time")
	}
	state := k.hubs[hub]
	if !bytes.Equal(state.SecretHash, c.SecretHash) {
		return errors.New("secret hash: must be the hub's")
	}
	state.Certificate, state.CertificateExpires = c.Fingerprint, c.ExpiresAt
	k.hubs[hub] = state
	return nil
}

const (
	known   domain.HubID = "hub-7k2m-q4xd-93ta"
	unknown domain.HubID = "hub-7k2m-q4xd-93tb"
)

func newEnrolment(t testing.TB) (*identity.Enrolment, *memoryDirectory, *prometheus.Registry) {
	t.Helper()
	hash := sha256.Sum256([]byte(secret))
	directory := &memoryDirectory{
		hubs: map[domain.HubID]domain.HubState{
			known: {ID: known, Registered: true, SecretHash: hash[:]},
		},
	}
	registry := prometheus.NewPedanticRegistry()
	e, err := identity.NewEnrolment(identity.EnrolmentConfig{
		Authority: openAuthority(t, identity.AuthorityConfig{Dir: t.TempDir()}),
		Directory: directory,
		Broker:    func() string { return "mqtts://hubs.example.org:8883" },
		Logger:    streamstest.Logger(),
		Metrics:   registry,
	})
	if err != nil {
		t.Fatal(err)
	}
	return e, directory, registry
}

// TestEnrolment checks every field of an enrolment's answer.
func TestEnrolment(t *testing.T) {
	t.Parallel()
	e, directory, registry := newEnrolment(t)
	key := newKey(t)
	for _, serial := range []string{"HUB-7K2M-Q4XD-93TA", "hub7k2mq4xd93ta", "Hub-7k2M-Q4xd93tA"} {
		answer, err := e.Issue(
			t.Context(),
			protocol.CertificateRequest{Serial: serial, Secret: secret, CSR: newCSR(t, key)},
		)
		if err != nil {
			t.Fatalf("%s: %v", serial, err)
		}
		c := parseCertificate(t, answer.Certificate)
		ca := parseCertificate(t, answer.CA)
		if err := c.CheckSignatureFrom(ca); err != nil {
			t.Error(err)
		}
		if answer.HubID != string(known) || c.Subject.CommonName != string(known) ||
			answer.Broker != "mqtts://hubs.example.org:8883" {
			t.Errorf("answered %+v", answer)
		}
		if answer.ExpiresAt != domain.FormatTime(c.NotAfter) {
			t.Errorf("expires at %s, the certificate at %v", answer.ExpiresAt, c.NotAfter)
		}
		current, issued := directory.hubs[known], &hub{certificate: c}
		if current.Certificate != issued.fingerprint() || !current.CertificateExpires.Equal(c.NotAfter) {
			t.Errorf("recorded %s until %v", current.Certificate, current.CertificateExpires)
		}
	}
	if got := counted(t, registry, "hubcloud_identity_enrolments_total", "issued"); got != 3 {
		t.Errorf("%v counted", got)
	}
}

// counted returns the value of a counter by its name and only label.
func counted(t testing.TB, registry *prometheus.Registry, name, label string) float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			if family.GetName() == name && metric.GetLabel()[0].GetValue() == label {
				return metric.GetCounter().GetValue()
			}
		}
	}
	return 0
}

// TestRejectedEnrolments: a malformed request is rejected before the directory is read. A wrong
// secret and an unknown serial get the same answer.
func TestRejectedEnrolments(t *testing.T) {
	t.Parallel()
	e, directory, _ := newEnrolment(t)
	csr := newCSR(t, newKey(t))
	for what, c := range map[string]struct {
		req   protocol.CertificateRequest
		code  domain.Code
		names string
		reads int
	}{
		"no serial": {
			protocol.CertificateRequest{Secret: secret, CSR: csr}, domain.CodeInvalidRequest,
			"serial",
			0,
		},
		"a malformed serial": {
			protocol.CertificateRequest{Serial: "HUB-1", Secret: secret, CSR: csr},
			domain.CodeInvalidRequest, "serial", 0,
		},
		"a subject as serial": {
			protocol.CertificateRequest{Serial: "*", Secret: secret, CSR: csr},
			domain.CodeInvalidRequest, "serial", 0,
		},
		"no secret": {
			protocol.CertificateRequest{Serial: string(known), CSR: csr}, domain.CodeInvalidRequest,
			"secret", 0,
		},
		"too long a secret": {
			protocol.CertificateRequest{
				Serial: string(known), Secret: strings.Repeat("x", 1<<20), CSR: csr,
			},
			domain.CodeInvalidRequest, "secret", 0,
		},
		"no request": {
			protocol.CertificateRequest{Serial: string(known), Secret: secret},
			domain.CodeInvalidRequest, "csr", 0,
		},
		"no request, from an unknown hub": {
			protocol.CertificateRequest{Serial: string(unknown), Secret: secret},
			domain.CodeInvalidRequest, "csr", 0,
		},
		"a wrong secret": {
			protocol.CertificateRequest{Serial: string(known), Secret: "wrong", CSR: csr},
			domain.CodeUnauthenticated, "", 1,
		},
		"an unknown serial": {
			protocol.CertificateRequest{Serial: string(unknown), Secret: secret, CSR: csr},
			domain.CodeUnauthenticated, "", 1,
		},
	} {
		directory.reads = 0
		_, err := e.Issue(t.Context(), c.req)
		var rejected *domain.Error
		if !errors.As(err, &rejected) || rejected.Code != c.code || !strings.HasPrefix(rejected.Message, c.names) {
			t.Errorf("%s: %v", what, err)
		}
		if c.code == domain.CodeUnauthenticated && rejected.Message != "unknown serial or wrong secret" {
			t.Errorf("%s: message %q distinguishes the two", what, rejected.Message)
		}
		if directory.reads != c.reads {
			t.Errorf("%s: %d reads of the directory, want %d", what, directory.reads, c.reads)
		}
	}
	if directory.hubs[known].Certificate != "" {
		t.Error("a certificate was recorded")
	}

	directory.err = errors.New("away")
	_, err := e.Issue(
		t.Context(), protocol.CertificateRequest{Serial: string(known), Secret: secret, CSR: csr},
	)
	if domain.CodeOf(err) != domain.CodeInternal {
		t.Errorf("a directory that cannot be read: %v", err)
	}
}

// TestRejectionsTakeTheSameTime: a wrong secret and an unknown serial take the same time.
func TestRejectionsTakeTheSameTime(t *testing.T) {
	t.Parallel()
	e, _, _ := newEnrolment(t)
	csr := newCSR(t, newKey(t))
	// Other work of the machine affects the fastest of several tries least.
	took := func(req protocol.CertificateRequest) time.Duration {
		fastest := time.Hour
		for range 9 {
			began := time.Now()
			_, err := e.Issue(t.Context(), req)
			if domain.CodeOf(err) != domain.CodeUnauthenticated {
				t.Fatalf("got %v, want unauthenticated", err)
			}
			fastest = min(fastest, time.Since(began))
		}
		return fastest
	}
	for tries := 1; ; tries++ { // on a busy machine all nine tries can be slow
		wrong := took(protocol.CertificateRequest{Serial: string(known), Secret: "wrong", CSR: csr})
		none := took(protocol.CertificateRequest{Serial: string(unknown), Secret: secret, CSR: csr})
		if difference := (wrong - none).Abs(); difference <= 20*time.Millisecond {
			break
		}
		if tries == 20 {
			t.Fatalf("a wrong secret takes %v, an unknown serial %v", wrong, none)
		}
	}

	ended, cancel := context.WithCancel(t.Context())
	cancel()
	fastest := time.Hour
	for range 20 {
		began := time.Now()
		_, _ = e.Issue(
			ended, protocol.CertificateRequest{Serial: string(known), Secret: "wrong", CSR: csr},
		)
		fastest = min(fastest, time.Since(began))
	}
	if fastest >= 50*time.Millisecond {
		t.Errorf("the rejection of a caller that has gone took %v, want less than 50ms", fastest)
	}
}
