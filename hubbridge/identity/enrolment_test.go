package identity_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"hubcloud/domain"
	"hubcloud/hubbridge/identity"
	"hubcloud/hubbridge/protocol"
	"hubcloud/streams/streamstest"
)

// TestEnrolment checks every field of an enrolment's answer.
func TestEnrolment(t *testing.T) {
	t.Parallel()
	i, key, known := start(t), newKey(t), hubID(1)
	i.register(t, known)
	for _, serial := range []string{"HUB-TEST-0000-0001", "hubtest00000001", "Hub-tEst-0000-0001"} {
		answer, err := i.enrolment.Issue(
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
			answer.Broker != "mqtts://"+i.broker.MQTTAddr() {
			t.Errorf("answered %+v", answer)
		}
		if answer.ExpiresAt != domain.FormatTime(c.NotAfter) {
			t.Errorf("expires at %s, the certificate at %v", answer.ExpiresAt, c.NotAfter)
		}
		current, _, err := i.streams.Directory.Hub(t.Context(), known)
		issued := &hub{certificate: c}
		if err != nil || current.Certificate != issued.fingerprint() ||
			!current.CertificateExpires.Equal(c.NotAfter) {
			t.Errorf("recorded %s until %v, %v", current.Certificate, current.CertificateExpires, err)
		}
	}
}

// TestRejectedEnrolments: a malformed request is rejected before the directory is read. A wrong
// secret and an unknown serial get the same answer.
func TestRejectedEnrolments(t *testing.T) {
	t.Parallel()
	i, csr := start(t), newCSR(t, newKey(t))
	known, unknown := string(hubID(1)), string(hubID(2))
	i.register(t, hubID(1))
	unreadable, err := identity.NewEnrolment(identity.EnrolmentConfig{
		Authority: i.authority, Directory: brokenDirectory{},
		Broker: func() string { return "" }, Logger: streamstest.Logger(),
	})
	streamstest.Must(t, err)
	const invalid, internal = domain.CodeInvalidRequest, domain.CodeInternal
	for what, c := range map[string]struct {
		serial, secret, csr string
		at                  *identity.Enrolment
		code                domain.Code
		message             string
	}{
		"no serial":             {"", secret, csr, unreadable, invalid, "serial"},
		"a malformed serial":    {"HUB-1", secret, csr, unreadable, invalid, "serial"},
		"a subject as serial":   {"*", secret, csr, unreadable, invalid, "serial"},
		"no secret":             {known, "", csr, unreadable, invalid, "secret"},
		"too long a secret":     {known, strings.Repeat("x", 1<<20), csr, unreadable, invalid, "secret"},
		"no request":            {known, secret, "", unreadable, invalid, "csr"},
		"an unreadable request": {unknown, secret, "x", unreadable, invalid, "csr"},
		"no directory":          {known, secret, csr, unreadable, internal, ""},
		"a wrong secret": {
			known, "wrong", csr, i.enrolment, domain.CodeUnauthenticated,
			"unknown serial or wrong secret",
		},
		"an unknown serial": {
			unknown, secret, csr, i.enrolment, domain.CodeUnauthenticated,
			"unknown serial or wrong secret",
		},
	} {
		_, err := c.at.Issue(t.Context(), protocol.CertificateRequest{
			Serial: c.serial, Secret: c.secret, CSR: c.csr,
		})
		var rejected *domain.Error
		if domain.CodeOf(err) != c.code || c.code != internal &&
			(!errors.As(err, &rejected) || !strings.HasPrefix(rejected.Message, c.message)) {
			t.Errorf("%s: got %v, want %s with %q", what, err, c.code, c.message)
		}
	}
	state, _, err := i.streams.Directory.Hub(t.Context(), hubID(1))
	if err != nil || state.Certificate != "" {
		t.Errorf("got certificate %q, %v, want none recorded", state.Certificate, err)
	}
}

// TestRejectionsTakeTheSameTime: a wrong secret and an unknown serial take the same time.
func TestRejectionsTakeTheSameTime(t *testing.T) {
	t.Parallel()
	i, csr := start(t), newCSR(t, newKey(t))
	known, unknown := string(hubID(1)), string(hubID(2))
	i.register(t, hubID(1))
	// Other work of the machine affects the fastest of several tries least.
	took := func(req protocol.CertificateRequest) time.Duration {
		fastest := time.Hour
		for range 9 {
			began := time.Now()
			_, err := i.enrolment.Issue(t.Context(), req)
			if domain.CodeOf(err) != domain.CodeUnauthenticated {
				t.Fatalf("got %v, want unauthenticated", err)
			}
			fastest = min(fastest, time.Since(began))
		}
		return fastest
	}
	for tries := 1; ; tries++ { // on a busy machine all nine tries can be slow
		wrong := took(protocol.CertificateRequest{Serial: known, Secret: "wrong", CSR: csr})
		none := took(protocol.CertificateRequest{Serial: unknown, Secret: secret, CSR: csr})
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
		if _, err := i.enrolment.Issue(
			ended, protocol.CertificateRequest{Serial: known, Secret: "wrong", CSR: csr},
		); err == nil {
			t.Fatal("a wrong secret has got a certificate")
		}
		fastest = min(fastest, time.Since(began))
	}
	if fastest >= 50*time.Millisecond {
		t.Errorf("the rejection of a caller that has gone took %v, want less than 50ms", fastest)
	}
}
