package virtualhub

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"hubcloud/domain"
	"hubcloud/hubbridge/protocol"
)

// maxAnswer is the most that is read of an answer to an enrolment.
const maxAnswer = 256 << 10

// enrolError is an enrolment that the cloud refused.
type enrolError struct {
	Status     int
	Type       string
	Message    string
	RetryAfter time.Duration // 0: not said
}

func (e *enrolError) Error() string {
	return fmt.Sprintf("enrolment refused: %d %s: %s", e.Status, e.Type, e.Message)
}

// enrol makes a new key and has a certificate issued for it. A refusal is an *enrolError.
func enrol(ctx context.Context, cfg Config, id domain.HubID) (*identity, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	csr, err := x509.CreateCertificateRequest(
		rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: string(id)}}, key,
	)
	if err != nil {
		return nil, fmt.Errorf("make a certificate request: %w", err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encode the key: %w", err)
	}
	certificate, err := requestCertificate(ctx, cfg, protocol.CertificateRequest{
		Serial: id.Serial(), Secret: cfg.Secret, CSR: pemText("CERTIFICATE REQUEST", csr),
	})
	if err != nil {
		return nil, err
	}
	i := &identity{
		HubID: certificate.HubID, Key: pemText("PRIVATE KEY", der),
		Certificate: certificate.Certificate,
		CA:          certificate.CA, Broker: certificate.Broker,
	}
	if err := i.parse(id); err != nil {
		return nil, fmt.Errorf("answer to the enrolment: %w", err)
	}
	return i, nil
}

func requestCertificate(
	ctx context.Context, cfg Config, body protocol.CertificateRequest,
) (protocol.Certificate, error) {
	var certificate protocol.Certificate
	url := strings.TrimRight(cfg.EnrollURL, "/") + "/link/v1/certificates"
	req, err := http.NewRequestWithContext(
		ctx, http.MethodPost, url, bytes.NewReader(mustJSON(body)),
	)
	if err != nil {
		return certificate, fmt.Errorf("enrol: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := cfg.HTTPClient.Do(req)
	if err != nil {
		return certificate, fmt.Errorf("enrol: %w", err)
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return certificate, fmt.Errorf("enrol: %w", err)
	}
	if resp.StatusCode != http.StatusCreated {
		return certificate, refusedEnrolment(resp, answer)
	}
	if err := json.Unmarshal(answer, &certificate); err != nil {
		return certificate, fmt.Errorf("answer to the enrolment: %w", err)
	}
	return certificate, nil
}

func refusedEnrolment(resp *http.Response, answer []byte) error {
	var body struct {
		Error protocol.Error `json:"error"`
	}
	_ = json.Unmarshal(answer, &body) // an answer that says nothing readable is told by its status
	e := &enrolError{Status: resp.StatusCode, Type: body.Error.Type, Message: body.Error.Message}
	if seconds, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && seconds > 0 {
		e.RetryAfter = time.Duration(seconds) * time.Second
	}
	return e
}

func pemText(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}
