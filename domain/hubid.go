package domain

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"regexp"
	"strings"
	"unicode"
)

// HubID identifies a hub: `<prefix>-<4>-<4>-<4>`, lower case. The zero value is no hub.
type HubID string

var hubIDPattern = regexp.MustCompile(`^[a-z][a-z0-9]{1,11}-[a-z0-9]{4}-[a-z0-9]{4}-[a-z0-9]{4}$`)

// ParseHubID parses a hub ID exactly as the API writes it, in lower case and with dashes. It
// returns false for anything else.
func ParseHubID(s string) (HubID, bool) {
	if !hubIDPattern.MatchString(s) {
		return "", false
	}
	return HubID(s), true
}

// ParseSerial parses a Serial, in any case, with or without dashes of any kind and white space, and
// returns its hub ID: the last twelve characters are the three groups, the ones before them the
// prefix.
func ParseSerial(s string) (HubID, bool) {
	bare := strings.ToLower(strings.Map(func(r rune) rune {
		if isDash(r) || unicode.IsSpace(r) || invisible(r) {
			return -1
		}
		return r
	}, s))
	if len(bare) < 14 || len(bare) > 24 {
		return "", false
	}
	prefix, groups := bare[:len(bare)-12], bare[len(bare)-12:]
	return ParseHubID(prefix + "-" + groups[:4] + "-" + groups[4:8] + "-" + groups[8:])
}

// Serial returns the hub ID in upper case, as printed on the label.
func (h HubID) Serial() string { return strings.ToUpper(string(h)) }

// NewHubID returns the hub ID with that prefix and twelve characters made of the entropy. It
// returns false for a prefix that no hub ID can have.
func NewHubID(prefix string, entropy [12]byte) (HubID, bool) {
	const alphabet = "23456789abcdefghjkmnpqrstuvwxyz" // without those that are easily misread
	for i, b := range entropy {
		entropy[i] = alphabet[int(b)%len(alphabet)]
	}
	return ParseHubID(fmt.Sprintf("%s-%s-%s-%s", prefix, entropy[:4], entropy[4:8], entropy[8:]))
}

// virtualPrefix begins the ids of virtual hubs, which the service runs.
const virtualPrefix = "virtual"

// VirtualHubID returns the id of the one virtual hub that an organization can have.
func VirtualHubID(org string) HubID {
	sum := sha256.Sum256([]byte(org))
	hub, _ := NewHubID(virtualPrefix, [12]byte(sum[:])) // a valid prefix
	return hub
}

// Virtual reports whether the service runs the hub.
func (h HubID) Virtual() bool { return strings.HasPrefix(string(h), virtualPrefix+"-") }

// NewEnrolmentSecret returns an enrolment secret as hubs show it: the entropy in base64url without
// padding.
func NewEnrolmentSecret(entropy [32]byte) string {
	return base64.RawURLEncoding.EncodeToString(entropy[:])
}

// ValidEnrolmentSecret reports whether text has the form of an enrolment secret.
func ValidEnrolmentSecret(text string) bool {
	entropy, err := base64.RawURLEncoding.Strict().DecodeString(text)
	return err == nil && len(entropy) == 32 && !strings.ContainsAny(text, "\r\n")
}

// HashEnrolmentSecret returns the SHA-256 of an enrolment secret's text, which is all that the
// cloud stores of it.
func HashEnrolmentSecret(secret string) []byte {
	sum := sha256.Sum256([]byte(secret))
	return sum[:]
}
