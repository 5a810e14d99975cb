package identity

import (
	"bytes"
	"crypto"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
)

const (
	blockCertificate = "CERTIFICATE"
	blockPrivateKey  = "PRIVATE KEY"
)

// parseCertificates parses PEM text of one or more certificates. Other blocks are an error.
func parseCertificates(text []byte) ([]*x509.Certificate, error) {
	var found []*x509.Certificate
	for rest := text; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if block.Type != blockCertificate {
			return nil, fmt.Errorf("contains a %s block: only certificates are allowed", block.Type)
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		found = append(found, certificate)
	}
	if len(found) == 0 {
		return nil, errors.New("contains no PEM certificate")
	}
	return found, nil
}

// parsePrivateKey parses PEM text of a private key in PKCS#8, SEC 1 or PKCS#1. Errors do not quote
// the text.
func parsePrivateKey(text []byte) (crypto.Signer, error) {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, errors.New("contains no PEM private key")
	}
	var key any
	var err error
	switch block.Type {
	case blockPrivateKey:
		key, err = x509.ParsePKCS8PrivateKey(block.Bytes)
	case "EC PRIVATE KEY":
		key, err = x509.ParseECPrivateKey(block.Bytes)
	case "RSA PRIVATE KEY":
		key, err = x509.ParsePKCS1PrivateKey(block.Bytes)
	default:
		return nil, fmt.Errorf(
			"contains a %s block: only an unencrypted private key is allowed", block.Type,
		)
	}
	if err != nil {
		return nil, errors.New("contains a private key that cannot be parsed")
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil, errors.New("contains a key that cannot sign")
	}
	return signer, nil
}

func encodeCertificates(certificates ...*x509.Certificate) []byte {
	var text bytes.Buffer
	for _, c := range certificates {
		text.Write(pem.EncodeToMemory(&pem.Block{Type: blockCertificate, Bytes: c.Raw}))
	}
	return text.Bytes()
}

func encodePrivateKey(key crypto.Signer) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: blockPrivateKey, Bytes: der}), nil
}
