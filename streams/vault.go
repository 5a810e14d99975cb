package streams

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
)

// Vault seals secrets that the service must be able to read. It is safe for concurrent use.
type Vault struct {
	aead cipher.AEAD
	key  []byte
}

// NewVault returns a vault with a key of 32 bytes, which nobody else has.
func NewVault(key []byte) (Vault, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return Vault{}, err
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	return Vault{aead, key}, err
}

// Seal seals the secret of an owner. Open needs the same owner.
func (v Vault) Seal(owner string, secret []byte) []byte {
	return v.aead.Seal(nil, nil, secret, []byte(owner))
}

// Open returns a sealed secret. It fails for another owner or key.
func (v Vault) Open(owner string, sealed []byte) ([]byte, error) {
	return v.aead.Open(nil, nil, sealed, []byte(owner))
}

// MAC returns a text that is the same for the same secret, and from which nobody without the key can
// guess it.
func (v Vault) MAC(secret string) []byte {
	mac := hmac.New(sha256.New, v.key)
	mac.Write([]byte(secret))
	return mac.Sum(nil)
}
