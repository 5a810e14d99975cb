package domain

import (
	"crypto/sha256"
	"encoding/base64"
	"log/slog"
	"slices"
)

const (
	// invitationSecretLength is the number of random bytes in an invitation's link.
	invitationSecretLength = 32
	// invitationTokenLength adds the ids of the organization and the invitation.
	invitationTokenLength = 16 + 16 + invitationSecretLength
)

// InvitationToken is the content of an invitation's link: the ids, and a secret that only the mail
// contains. It prints and logs without the secret; only Reveal returns it.
type InvitationToken struct {
	OrgID        string
	InvitationID string
	Secret       [invitationSecretLength]byte
}

// ParseInvitationToken parses a text returned by Reveal. Every error is the same not_found.
func ParseInvitationToken(s string) (InvitationToken, error) {
	raw, err := invitationTokenText.DecodeString(s)
	// The decoder skips line breaks; they show in the length.
	if err != nil || len(raw) != invitationTokenLength || len(s) != invitationTokenText.EncodedLen(len(raw)) {
		return InvitationToken{}, ErrInvitationNotFound()
	}
	return InvitationToken{
		OrgID: formatUUID([16]byte(raw[:16])), InvitationID: formatUUID([16]byte(raw[16:32])),
		Secret: [invitationSecretLength]byte(raw[32:]),
	}, nil
}

// invitationTokenText is base64url without padding, and strict, so that a token has exactly one
// text.
var invitationTokenText = base64.RawURLEncoding.Strict()

// Reveal returns the token's text with the secret: 86 characters of A-Z, a-z, 0-9, - and _. Both
// ids must be UUIDs.
func (t InvitationToken) Reveal() string {
	org, invitation := parseUUID(t.OrgID), parseUUID(t.InvitationID)
	return invitationTokenText.EncodeToString(slices.Concat(org[:], invitation[:], t.Secret[:]))
}

// SecretHash returns the SHA-256 of the secret, the only part that is stored. A slower hash is not
// needed for 256 random bits.
func (t InvitationToken) SecretHash() [32]byte { return sha256.Sum256(t.Secret[:]) }

// String returns the token without its secret.
func (t InvitationToken) String() string { return "invitation " + t.InvitationID + " of " + t.OrgID }

// GoString returns the token without its secret.
func (t InvitationToken) GoString() string { return "domain.InvitationToken(" + t.String() + ")" }

// LogValue returns the token without its secret.
func (t InvitationToken) LogValue() slog.Value { return slog.StringValue(t.String()) }
