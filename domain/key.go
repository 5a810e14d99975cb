package domain

import (
	"crypto/sha256"
	"crypto/subtle"
	"hash/crc32"
	"log/slog"
	"strings"
)

// The shape of an API key: `hc_<environment>_<key id><secret>`, and the secret ends in a check sum
// of all that stands before it. A key that was cut off or mistyped is refused without a look at any
// store.
const (
	keyPrefix = "hc_"
	// KeyIDLength is the length of a key id: 71 bits, so that ids never meet.
	KeyIDLength = 12
	// keyRandomLength is the length of the random part of a secret: 256 bits.
	keyRandomLength = 43
	// keyCheckLength is the length of the check sum: a CRC-32.
	keyCheckLength  = 6
	keySecretLength = keyRandomLength + keyCheckLength
	// KeyEntropy is how many random bytes NewKey takes: 16 for the id, 32 for the secret.
	KeyEntropy = 16 + 32
)

// The environments of keys. An installation has one, and takes no key of another.
const (
	EnvironmentLive = "live"
	EnvironmentDev  = "dev"
)

// IsEnvironment says whether s is one of the environments.
func IsEnvironment(s string) bool { return s == EnvironmentLive || s == EnvironmentDev }

// Key is an API key in its parts. It holds the secret: it prints and logs without it, and only
// Reveal gives all of it.
type Key struct {
	// Environment is EnvironmentLive or EnvironmentDev.
	Environment string
	// ID tells keys apart; it is no secret.
	ID string
	// Secret is the rest of the key, with its check sum.
	Secret string
}

// NewKey makes a key of an environment from KeyEntropy random bytes.
func NewKey(environment string, entropy [KeyEntropy]byte) Key {
	k := Key{
		Environment: environment,
		ID:          encodeBase62(entropy[:16], KeyIDLength),
		Secret:      encodeBase62(entropy[16:], keyRandomLength),
	}
	check := keyCheck(k.Reveal())
	k.Secret += string(check[:])
	return k
}

// ParseKey takes a key apart, exactly as it was given out: no white space, no other case. Every
// refusal is the same unauthenticated, and says nothing of what was given. It allocates nothing for
// a key of the right shape.
func ParseKey(s string) (Key, error) {
	rest, ok := strings.CutPrefix(s, keyPrefix)
	if !ok {
		return Key{}, errNoKey()
	}
	environment, rest, ok := strings.Cut(rest, "_")
	if !ok || !IsEnvironment(environment) || len(rest) != KeyIDLength+keySecretLength ||
		!isBase62(rest) {
		return Key{}, errNoKey()
	}
	covered := s[:len(s)-keyCheckLength]
	check := keyCheck(covered)
	if s[len(covered):] != string(check[:]) {
		return Key{}, errNoKey()
	}
	return Key{Environment: environment, ID: rest[:KeyIDLength], Secret: rest[KeyIDLength:]}, nil
}

func errNoKey() error {
	return Errorf(
		CodeUnauthenticated,
		"the API key is malformed; send it as `Authorization: Bearer <key>`, exactly as it was shown",
	)
}

// IsKeyID says whether s has the shape of a key id.
func IsKeyID(s string) bool { return len(s) == KeyIDLength && isBase62(s) }

// SecretHash is what is kept of a key: the SHA-256 of its secret. The secret has 256 random bits,
// so nothing slower is called for.
func (k Key) SecretHash() [32]byte { return sha256.Sum256([]byte(k.Secret)) }

// Matches says, in constant time, whether hash is that of the key's secret.
func (k Key) Matches(hash [32]byte) bool {
	own := k.SecretHash()
	return subtle.ConstantTimeCompare(own[:], hash[:]) == 1
}

// Reveal gives the whole key. It is shown once, to whoever made it.
func (k Key) Reveal() string { return keyPrefix + k.Environment + "_" + k.ID + k.Secret }

// String gives the key without its secret.
func (k Key) String() string { return keyPrefix + k.Environment + "_" + k.ID + "…" }

// GoString gives the key without its secret.
func (k Key) GoString() string { return "domain.Key(" + k.String() + ")" }

// LogValue gives the key without its secret.
func (k Key) LogValue() slog.Value { return slog.StringValue(k.String()) }

// keyCheck is the check sum of a key's text up to it: CRC-32 (IEEE) in base 62. The loop stands
// here because crc32.Update wants the text as bytes, which would cost an allocation for every
// request.
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
