package identity

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"strings"

	"hubcloud/domain"
)

const (
	// maxCSRBytes is generous: a request with an RSA key of 4096 bits and many names has about 3
	// KB.
	maxCSRBytes = 16 << 10
	// RSA keys beyond the upper bound are refused by TLS implementations, Go's among them, for the
	// time that they take.
	minRSABits, maxRSABits = 2048, 8192
)

// parseCSR takes a certificate request as a hub sends it (PEM of PKCS#10, exactly one block) and
// gives the public key that it proves to have. Nothing else of it counts. Errors are
// invalid_request, and name the field.
func parseCSR(text string) (crypto.PublicKey, error) {
	invalid := func(what string) error { return domain.Errorf(domain.CodeInvalidRequest, "csr: %s", what) }
	if len(text) > maxCSRBytes {
		return nil, invalid("is too long: at most 16 KiB are allowed")
	}
	text = strings.TrimSpace(text)
	block, rest := pem.Decode([]byte(text))
	switch {
	// Decode steps over what stands before a block.
	case block == nil || !strings.HasPrefix(text, "-----BEGIN "):
		return nil, invalid("is not PEM: one CERTIFICATE REQUEST block is wanted")
	case block.Type != "CERTIFICATE REQUEST" && block.Type != "NEW CERTIFICATE REQUEST":
		return nil, invalid("is PEM of something else: one CERTIFICATE REQUEST block is wanted")
	// Decode also steps over a block that it cannot read.
	case len(rest) > 0 || strings.Count(text, "-----BEGIN ") > 1:
		return nil, invalid(
			"holds more than one PEM block: one CERTIFICATE REQUEST block is wanted",
		)
	}
	request, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return nil, invalid("is not a PKCS#10 certificate request")
	}
	// The key first: its size bounds what checking the signature costs.
	if err := checkKey(request.PublicKey); err != "" {
		return nil, invalid(err)
	}
	if err := request.CheckSignature(); err != nil {
		return nil, invalid("is not signed with its own key")
	}
	return request.PublicKey, nil
}

// checkKey says what is wrong with a key, or "".
func checkKey(key crypto.PublicKey) string {
	switch key := key.(type) {
	case *ecdsa.PublicKey:
		switch key.Curve {
		case elliptic.P256(), elliptic.P384(), elliptic.P521():
			return ""
		}
		return "has a key that is too weak: P-256 or stronger is allowed"
	case *rsa.PublicKey:
		switch bits := key.N.BitLen(); {
		case bits < minRSABits:
			return "has a key that is too weak: RSA with 2048 bits or more is allowed"
		case bits > maxRSABits:
			return "has a key that is too large: RSA with at most 8192 bits is allowed"
		}
		return ""
	case ed25519.PublicKey:
		return ""
	default:
		return "has a key of a kind that is not allowed: P-256, P-384, P-521, Ed25519 and RSA are"
	}
}
