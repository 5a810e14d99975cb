package identity

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hubcloud/domain"
	"hubcloud/streams/streamstest"
)

func request(t testing.TB, key crypto.Signer) string {
	t.Helper()
	template := &x509.CertificateRequest{
		Subject:  pkix.Name{CommonName: "another name"},
		DNSNames: []string{"api.example.org"},
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, template, key)
	streamstest.Must(t, err)
	return block("CERTIFICATE REQUEST", der)
}

func block(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

func ecKey(t testing.TB, curve elliptic.Curve) crypto.Signer {
	t.Helper()
	key, err := ecdsa.GenerateKey(curve, rand.Reader)
	streamstest.Must(t, err)
	return key
}

func rsaKey(t testing.TB, bits int) crypto.Signer {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, bits)
	streamstest.Must(t, err)
	return key
}

// testdata returns a stored request that cannot be generated here: Go makes no weak RSA keys, and
// very large ones take minutes.
func testdata(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	streamstest.Must(t, err)
	return string(text)
}

func TestValidCSRs(t *testing.T) {
	t.Parallel()
	_, edwards, err := ed25519.GenerateKey(rand.Reader)
	streamstest.Must(t, err)
	for what, key := range map[string]crypto.Signer{
		"P-256": ecKey(t, elliptic.P256()), "P-384": ecKey(t, elliptic.P384()),
		"P-521":    ecKey(t, elliptic.P521()),
		"RSA-2048": rsaKey(t, 2048), "Ed25519": edwards,
	} {
		text := request(t, key)
		for form, text := range map[string]string{
			"as made":                     text,
			"without the last line's end": strings.TrimSpace(text),
			"with DOS line ends":          strings.ReplaceAll(text, "\n", "\r\n"),
			"with empty lines around":     "\n\n" + text + "\n\n",
			"under the name of old tools": strings.ReplaceAll(
				text, "CERTIFICATE REQUEST", "NEW CERTIFICATE REQUEST",
			),
			"with white space at the ends": " " + text + "\t",
		} {
			got, err := parseCSR(text)
			if err != nil {
				t.Errorf("%s, %s: %v", what, form, err)
				continue
			}
			if !key.Public().(interface{ Equal(crypto.PublicKey) bool }).Equal(got) {
				t.Errorf("%s, %s: another key", what, form)
			}
		}
	}
}

func TestInvalidCSRs(t *testing.T) {
	t.Parallel()
	good := request(t, ecKey(t, elliptic.P256()))
	decoded, _ := pem.Decode([]byte(good))
	forged := append([]byte(nil), decoded.Bytes...)
	forged[len(forged)-1] ^= 1
	for what, c := range map[string]struct{ text, want string }{
		"nothing":            {"", "got no PEM"},
		"text":               {"hello", "got no PEM"},
		"base64 alone":       {strings.Join(strings.Split(good, "\n")[1:3], "\n"), "got no PEM"},
		"text before it":     {"hello\n" + good, "got no PEM"},
		"text after it":      {good + "hello", "more than one block"},
		"two of them":        {good + good, "more than one block"},
		"a broken one first": {good[:len(good)/2] + "\n" + good, "more than one block"},
		"cut off":            {good[:len(good)/2], "got no PEM"},
		"a certificate":      {block("CERTIFICATE", decoded.Bytes), "another kind of block"},
		"a private key":      {block("PRIVATE KEY", []byte("secret")), "another kind of block"},
		"no PKCS#10":         {block("CERTIFICATE REQUEST", []byte("hello")), "PKCS#10"},
		"bytes after it":     {block("CERTIFICATE REQUEST", append(decoded.Bytes, 0)), "PKCS#10"},
		"a forged signature": {block("CERTIFICATE REQUEST", forged), "signed with its own key"},
		"P-224":              {request(t, ecKey(t, elliptic.P224())), "must be on P-256"},
		"RSA-1024":           {testdata(t, "rsa1024.csr"), "at least 2048 bits"},
		"RSA-16384":          {testdata(t, "rsa16384.csr"), "at most 8192 bits"},
		"DSA":                {testdata(t, "dsa.csr"), "must be P-256"},
		"at most 16 KiB":     {good + strings.Repeat("\n", maxCSRBytes), "at most 16 KiB"},
	} {
		_, err := parseCSR(c.text)
		var apiErr *domain.Error
		if !errors.As(err, &apiErr) || apiErr.Code != domain.CodeInvalidRequest ||
			!strings.HasPrefix(apiErr.Message, "csr: ") {
			t.Errorf("%s: %v", what, err)
			continue
		}
		if !strings.Contains(apiErr.Message, c.want) {
			t.Errorf("%s: %q should contain %q", what, apiErr.Message, c.want)
		}
		if strings.Contains(apiErr.Message, "secret") {
			t.Errorf("%s: the message quotes what was sent", what)
		}
	}
}

// FuzzParseCSR: every input has an allowed key or is an invalid_request.
func FuzzParseCSR(f *testing.F) {
	good := request(f, ecKey(f, elliptic.P256()))
	f.Add(good)
	f.Add(good + good)
	f.Add("-----BEGIN CERTIFICATE REQUEST-----\n-----END CERTIFICATE REQUEST-----")
	f.Add(testdata(f, "rsa1024.csr"))
	f.Add(testdata(f, "dsa.csr"))
	f.Fuzz(func(t *testing.T, text string) {
		key, err := parseCSR(text)
		switch {
		case err != nil && domain.CodeOf(err) != domain.CodeInvalidRequest:
			t.Errorf("got %v, want invalid_request", err)
		case err == nil && checkKey(key) != "":
			t.Errorf("accepted a %T", key)
		}
	})
}
