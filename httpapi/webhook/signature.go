package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"strconv"
	"strings"
	"time"
)

const (
	secretPrefix = "whsec_"
	// The lengths of a secret in bytes that Standard Webhooks allows.
	minSecret, maxSecret = 24, 64
)

// errSecret does not contain the secret.
var errSecret = errors.New(
	"must be whsec_ and 24 to 64 bytes in base64; `echo whsec_$(openssl rand -base64 32)` makes one",
)

// Secret is a key with which requests are signed.
type Secret struct{ key []byte }

// ParseSecret decodes a secret in the form of Standard Webhooks: whsec_ and base64, with or without
// padding.
func ParseSecret(text string) (Secret, error) {
	encoded, ok := strings.CutPrefix(text, secretPrefix)
	key, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(encoded, "="))
	if !ok || err != nil || len(key) < minSecret || len(key) > maxSecret {
		return Secret{}, errSecret
	}
	return Secret{key}, nil
}

// UnmarshalText decodes a secret, as ParseSecret does.
func (s *Secret) UnmarshalText(text []byte) (err error) {
	*s, err = ParseSecret(string(text))
	return err
}

// String returns a placeholder, so that a secret appears in no log.
func (Secret) String() string { return secretPrefix + "…" }

// signature returns the value of the header webhook-signature: one signature for each secret.
func signature(secrets []Secret, id string, at time.Time, body []byte) string {
	all := make([]string, 0, len(secrets))
	for _, secret := range secrets {
		sum := hmac.New(sha256.New, secret.key)
		sum.Write([]byte(id + "." + timestamp(at) + "."))
		sum.Write(body)
		all = append(all, "v1,"+base64.StdEncoding.EncodeToString(sum.Sum(nil)))
	}
	return strings.Join(all, " ")
}

// timestamp returns the value of the header webhook-timestamp.
func timestamp(at time.Time) string { return strconv.FormatInt(at.Unix(), 10) }
