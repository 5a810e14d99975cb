package domain

import (
	"crypto/sha256"
	"encoding/base64"
	"log/slog"
	"slices"
)

const (
	// invitationSecretLength is how many random bytes the link of an invitation carries.
	invitationSecretLength = 32
	// invitationTokenLength adds the ids of the organization and the invitation.
	invitationTokenLength = 16 + 16 + invitationSecretLength
)

// InvitationToken is what the link of an invitation carries: which invitation it is, and the secret
// that only the mail holds. It prints and logs without the secret, and only Reveal gives all of it.
type InvitationToken struct {
	OrgID        string
	InvitationID string
	Secret       [invitationSecretLength]byte
}

// ParseInvitationToken takes a token's text apart, exactly as Reveal gave it. Every refusal is the
// same not_found.
func ParseInvitationToken(s string) (InvitationToken, error) {
	raw, err := invitationTokenText.DecodeString(s)
	// The decoder passes over line breaks: the length tells.
	if err != nil || len(raw) != invitationTokenLength ||
		len(s) != invitationTokenText.EncodedLen(len(raw)) {
		return InvitationToken{}, ErrInvitationNotFound()
	}
	return InvitationToken{
		OrgID: formatUUID([16]byte(raw[:16])), InvitationID: formatUUID([16]byte(raw[16:32])),
		Secret: [invitationSecretLength]byte(raw[32:]),
	}, nil
}

// invitationTokenText is how a token is written: base64url without padding, and strict, so that a
// token has one text alone.
var invitationTokenText = base64.RawURLEncoding.Strict()

// Reveal gives the token as a link carries it: 86 characters of A-Z, a-z, 0-9, - and _. Both ids
// must be UUIDs.
func (t InvitationToken) Reveal() string {
	org, invitation := parseUUID(t.OrgID), parseUUID(t.InvitationID)
	return invitationTokenText.EncodeToString(slices.Concat(org[:], invitation[:], t.Secret[:]))
}

// SecretHash is what is kept of a token: the SHA-256 of its secret. The secret has 256 random bits,
// so nothing slower is called for.
func (t InvitationToken) SecretHash() [32]byte { return sha256.Sum256(t.Secret[:]) }

// String gives the token without its secret.
func (t InvitationToken) String() string { return "invitation " + t.InvitationID + " of " + t.OrgID }

// GoString gives the token without its secret.
func (t InvitationToken) GoString() string { return "domain.InvitationToken(" + t.String() + ")" }

// LogValue gives the token without its secret.
func (t InvitationToken) LogValue() slog.Value { return slog.StringValue(t.String()) }
