package hub

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

// maxResponseBytes bounds the response to an enrolment.
const maxResponseBytes = 256 << 10

// enrolmentError is the rejection of an enrolment by the cloud.
type enrolmentError struct {
	Status     int    // of the HTTP response
	Type       string // the API error type; empty if the response has none
	Message    string
	RetryAfter time.Duration // from the Retry-After header; 0 if the response has none
}

func (e *enrolmentError) Error() string {
	return fmt.Sprintf("enrolment rejected: %d %s: %s", e.Status, e.Type, e.Message)
}

// requestIdentity makes a new key, enrols and returns the identity that the cloud issued. A
// rejection is an *enrolmentError.
func requestIdentity(ctx context.Context, cfg Config, id domain.HubID) (*identity, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	csr, err := x509.CreateCertificateRequest(
		rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: string(id)}},
		key,
	)
	if err != nil {
		return nil, fmt.Errorf("make a certificate request: %w", err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encode the key: %w", err)
	}
	certificate, err := post(ctx, cfg, protocol.CertificateRequest{
		Serial: id.Serial(), Secret: cfg.Secret, CSR: pemText("CERTIFICATE REQUEST", csr),
	})
	if err != nil {
		return nil, err
	}
	i := &identity{
		HubID: certificate.HubID, Key: pemText("PRIVATE KEY", der),
		Certificate: certificate.Certificate, CA: certificate.CA, Broker: certificate.Broker,
	}
	if err := i.parse(id); err != nil {
		return nil, fmt.Errorf("enrolment response: %w", err)
	}
	return i, nil
}

func post(
	ctx context.Context, cfg Config, request protocol.CertificateRequest,
) (certificate protocol.Certificate, err error) {
	body, err := json.Marshal(request)
	if err != nil {
		return certificate, fmt.Errorf("enrol: %w", err)
	}
	url := strings.TrimRight(cfg.EnrollURL, "/") + "/link/v1/certificates"
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return certificate, fmt.Errorf("enrol: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := cfg.HTTPClient.Do(req)
	if err != nil {
		return certificate, fmt.Errorf("enrol: %w", err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err = io.ReadAll(io.LimitReader(resp.Body, maxResponseBytes))
	if err != nil {
		return certificate, fmt.Errorf("enrol: %w", err)
	}
	if resp.StatusCode != http.StatusCreated {
		return certificate, rejection(resp, body)
	}
	if err := json.Unmarshal(body, &certificate); err != nil {
		return certificate, fmt.Errorf("enrolment response: %w", err)
	}
	return certificate, nil
}

func rejection(resp *http.Response, body []byte) error {
	var decoded struct {
		Error protocol.Error `json:"error"`
	}
	_ = json.Unmarshal(body, &decoded) // the status alone describes an unreadable body
	e := &enrolmentError{Status: resp.StatusCode, Type: decoded.Error.Type, Message: decoded.Error.Message}
	after := resp.Header.Get("Retry-After")
	if seconds, err := strconv.Atoi(after); err == nil && seconds > 0 {
		e.RetryAfter = time.Duration(seconds) * time.Second
	} else if date, err := http.ParseTime(after); err == nil { // from a proxy
		e.RetryAfter = max(0, time.Until(date))
	}
	return e
}

func pemText(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}
