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
	// maxCSRBytes is well above the 3 KB of a request with an RSA key of 4096 bits and many names.
	maxCSRBytes = 16 << 10
	// TLS implementations, Go's among them, reject larger RSA keys because they are slow.
	minRSABits, maxRSABits = 2048, 8192
)

// parseCSR returns the public key of a hub's certificate request (one PEM block of PKCS#10) and
// verifies that the hub has the private key. Everything else in the request is ignored. Errors are
// invalid_request and name the field.
func parseCSR(text string) (crypto.PublicKey, error) {
	invalid := func(what string) error {
		return domain.Errorf(domain.CodeInvalidRequest, "csr: %s", what)
	}
	if len(text) > maxCSRBytes {
		return nil, invalid("must be at most 16 KiB")
	}
	text = strings.TrimSpace(text)
	block, rest := pem.Decode([]byte(text))
	switch {
	// Decode skips text before a block.
	case block == nil || !strings.HasPrefix(text, "-----BEGIN "):
		return nil, invalid("must be one PEM block CERTIFICATE REQUEST, got no PEM")
	case block.Type != "CERTIFICATE REQUEST" && block.Type != "NEW CERTIFICATE REQUEST":
		return nil, invalid("must be one PEM block CERTIFICATE REQUEST, got another kind of block")
	// Decode also skips a block that it cannot read.
	case len(rest) > 0 || strings.Count(text, "-----BEGIN ") > 1:
		return nil, invalid("must be one PEM block CERTIFICATE REQUEST, got more than one block")
	}
	request, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return nil, invalid("must be a PKCS#10 certificate request")
	}
	// Check the key first: its size limits the cost of checking the signature.
	if err := checkKey(request.PublicKey); err != "" {
		return nil, invalid(err)
	}
	if err := request.CheckSignature(); err != nil {
		return nil, invalid("must be signed with its own key")
	}
	return request.PublicKey, nil
}

// checkKey returns what is wrong with a key, or "".
func checkKey(key crypto.PublicKey) string {
	switch key := key.(type) {
	case *ecdsa.PublicKey:
		switch key.Curve {
		case elliptic.P256(), elliptic.P384(), elliptic.P521():
			return ""
		}
		return "the key must be on P-256, P-384 or P-521"
	case *rsa.PublicKey:
		switch bits := key.N.BitLen(); {
		case bits < minRSABits:
			return "the RSA key must have at least 2048 bits"
		case bits > maxRSABits:
			return "the RSA key must have at most 8192 bits"
		}
		return ""
	case ed25519.PublicKey:
		return ""
	default:
		return "the key must be P-256, P-384, P-521, Ed25519 or RSA"
	}
}
