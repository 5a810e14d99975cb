package webhook

import (
	"crypto/rand"
	"encoding/base64"
	"errors"

	"hubcloud/streams"
)

// secretBytes is how many random bytes a new secret has.
const secretBytes = 32

// errSealed is why a secret cannot be used.
var errSealed = errors.New(
	"the signing secret cannot be read, since the service has another certificate authority: " +
		"rotate the secret",
)

// Vault seals signing secrets. It is safe for concurrent use.
type Vault struct{ streams.Vault }

// NewSecret returns a new secret of a webhook, sealed. Only the webhook with that id can use it.
func (v Vault) NewSecret(webhookID string) []byte {
	secret := make([]byte, secretBytes)
	rand.Read(secret) // never fails: it ends the program instead
	return v.Seal(webhookID, secret)
}

// Reveal returns a sealed secret in the form of Standard Webhooks.
func (v Vault) Reveal(webhookID string, sealed []byte) (string, error) {
	secret, err := v.Open(webhookID, sealed)
	if err != nil {
		return "", errSealed
	}
	return "whsec_" + base64.StdEncoding.EncodeToString(secret), nil
}

// open returns the secrets that requests of a webhook are signed with.
func (v Vault) open(webhookID string, sealed [][]byte) ([]Secret, error) {
	var all []Secret
	for _, one := range sealed {
		text, err := v.Reveal(webhookID, one)
		if err != nil {
			if len(all) > 0 {
				return all, nil // a former one, which has expired with its authority
			}
			return nil, err
		}
		secret, err := ParseSecret(text)
		if err != nil {
			return nil, err
		}
		all = append(all, secret)
	}
	return all, nil
}
