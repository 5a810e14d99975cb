package domain

import (
	"crypto/sha256"
	"hash/crc32"
	"log/slog"
	"strings"
)

// The form of an API key is `hc_<environment>_<key id><secret>`. The secret ends with a checksum of
// all characters before it, so that a truncated or mistyped key is rejected without a lookup.
const (
	keyPrefix = "hc_"
	// KeyIDLength is the length of a key id: 71 random bits, so that ids do not collide.
	KeyIDLength = 12
	// keyRandomLength is the length of the random part of a secret: 256 bits.
	keyRandomLength = 43
	// keyCheckLength is the length of the checksum, a CRC-32.
	keyCheckLength  = 6
	keySecretLength = keyRandomLength + keyCheckLength
	// KeyEntropy is how many random bytes NewKey takes: 16 for the id, 32 for the secret.
	KeyEntropy = 16 + 32
)

// The environments of keys. An installation has one, and rejects keys of the other.
const (
	EnvironmentLive = "live"
	EnvironmentDev  = "dev"
)

// IsEnvironment reports whether s is an environment.
func IsEnvironment(s string) bool { return s == EnvironmentLive || s == EnvironmentDev }

// Key is a parsed API key. It prints and logs without its secret; only Reveal returns the whole
// key.
type Key struct {
	// Environment is EnvironmentLive or EnvironmentDev.
	Environment string
	// ID identifies the key; it is not secret.
	ID string
	// Secret is the rest of the key, with the checksum.
	Secret string
}

// NewKey returns a key of an environment, made from random bytes.
func NewKey(environment string, entropy [KeyEntropy]byte) Key {
	k := Key{Environment: environment, Secret: encodeBase62(entropy[16:], keyRandomLength)}
	return k.WithID(encodeBase62(entropy[:16], KeyIDLength))
}

// WithID returns a key with another id and the same random secret.
func (k Key) WithID(id string) Key {
	k.ID, k.Secret = id, k.Secret[:keyRandomLength]
	check := keyCheck(k.Reveal())
	k.Secret += string(check[:])
	return k
}

// ParseKey parses a text returned by Reveal, without any tolerance for white space or case. It
// returns the same unauthenticated error for every other text. The error has no part of the text,
// which may be a mistyped secret. ParseKey does not allocate for a well-formed key.
func ParseKey(s string) (Key, error) {
	rest, ok := strings.CutPrefix(s, keyPrefix)
	if !ok {
		return Key{}, errMalformedKey()
	}
	environment, rest, ok := strings.Cut(rest, "_")
	if !ok || !IsEnvironment(environment) || len(rest) != KeyIDLength+keySecretLength || !isBase62(rest) {
		return Key{}, errMalformedKey()
	}
	covered := s[:len(s)-keyCheckLength]
	check := keyCheck(covered)
	if s[len(covered):] != string(check[:]) {
		return Key{}, errMalformedKey()
	}
	return Key{Environment: environment, ID: rest[:KeyIDLength], Secret: rest[KeyIDLength:]}, nil
}

func errMalformedKey() error {
	return Errorf(
		CodeUnauthenticated,
		"the API key is malformed; send it as `Authorization: Bearer <key>`, "+
			"exactly as it was shown",
	)
}

// IsKeyID reports whether s has the form of a key id.
func IsKeyID(s string) bool { return len(s) == KeyIDLength && isBase62(s) }

// SecretHash returns the SHA-256 of the secret, the only part that is stored. A slower hash is not
// needed for 256 random bits.
func (k Key) SecretHash() [32]byte { return sha256.Sum256([]byte(k.Secret)) }

// Reveal returns the whole key, which is shown once, when it is created.
func (k Key) Reveal() string { return keyPrefix + k.Environment + "_" + k.ID + k.Secret }

// String returns the key without its secret.
func (k Key) String() string { return keyPrefix + k.Environment + "_" + k.ID + "…" }

// GoString returns the key without its secret.
func (k Key) GoString() string { return "domain.Key(" + k.String() + ")" }

// LogValue returns the key without its secret.
func (k Key) LogValue() slog.Value { return slog.StringValue(k.String()) }

// keyCheck returns the checksum of a key's text: CRC-32 (IEEE) in base 62. The loop avoids the
// allocation of converting the text to bytes for crc32.Update, on every request.
func keyCheck(s string) [keyCheckLength]byte {
	crc := ^uint32(0)
	for i := range len(s) {
		crc = crc32.IEEETable[byte(crc)^s[i]] ^ crc>>8
	}
	crc = ^crc
	var out [keyCheckLength]byte
	for i := len(out) - 1; i >= 0; i-- {
		out[i] = base62[crc%62]
		crc /= 62
	}
	return out
}
