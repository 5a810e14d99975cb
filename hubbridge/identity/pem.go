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

// parseCertificates takes PEM text with one certificate or more, and nothing else.
func parseCertificates(text []byte) ([]*x509.Certificate, error) {
	var found []*x509.Certificate
	for rest := text; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if block.Type != blockCertificate {
			return nil, fmt.Errorf("holds a %s where certificates are wanted", block.Type)
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		found = append(found, certificate)
	}
	if len(found) == 0 {
		return nil, errors.New("holds no PEM certificate")
	}
	return found, nil
}

// parsePrivateKey takes PEM text with one private key in any of the three usual forms. Its errors
// do not quote the text.
func parsePrivateKey(text []byte) (crypto.Signer, error) {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, errors.New("holds no PEM private key")
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
			"holds a %s where a private key without a password is wanted", block.Type,
		)
	}
	if err != nil {
		return nil, errors.New("holds a private key that cannot be read")
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil, errors.New("holds a key that cannot sign")
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
