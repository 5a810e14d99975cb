package oidc_test

import (
	"crypto/rand"
	"crypto/rsa"
	"testing"

	"github.com/go-jose/go-jose/v4"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newKey() *jose.SigningKey {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return &jose.SigningKey{Algorithm: jose.RS256, Key: key}
}

// symmetric is a key that a client which trusts the algorithm of a token would accept.
func symmetric() *jose.SigningKey {
	return &jose.SigningKey{Algorithm: jose.HS256, Key: []byte("s3crets3crets3crets3crets3crets3")}
}

func publicKey() jose.JSONWebKey {
	return jose.JSONWebKey{Key: secret.Key.(*rsa.PrivateKey).Public(), Algorithm: "RS256", Use: "sig"}
}
