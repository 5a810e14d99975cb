package domain

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"log/slog"
	"slices"
)

// unsubscribeMACLength is how many bytes of the HMAC-SHA-256 a token has.
const unsubscribeMACLength = 16

// UnsubscribeKey authenticates unsubscribe tokens. It is a secret of the installation.
type UnsubscribeKey [32]byte

// UnsubscribeToken is the content of the link in a mail that ends the mails about conditions. It
// holds for one member of one organization, and does not expire: it can do nothing else.
type UnsubscribeToken struct{ OrgID, MemberID string }

// Seal returns the token's text: 64 characters of A-Z, a-z, 0-9, - and _. Both ids must be UUIDs.
func (t UnsubscribeToken) Seal(key UnsubscribeKey) string {
	org, member := parseUUID(t.OrgID), parseUUID(t.MemberID)
	ids := slices.Concat(org[:], member[:])
	return base64.RawURLEncoding.EncodeToString(append(ids, unsubscribeMAC(key, ids)...))
}

// OpenUnsubscribeToken returns the token of a text that Seal has returned with that key, and
// not_found for any other text.
func OpenUnsubscribeToken(key UnsubscribeKey, text string) (UnsubscribeToken, error) {
	const idsLength = 16 + 16
	raw, err := base64.RawURLEncoding.Strict().DecodeString(text)
	// The decoder skips line breaks; they show in the length.
	if err != nil || len(raw) != idsLength+unsubscribeMACLength ||
		len(text) != base64.RawURLEncoding.EncodedLen(len(raw)) ||
		!hmac.Equal(raw[idsLength:], unsubscribeMAC(key, raw[:idsLength])) {
		return UnsubscribeToken{}, Errorf(CodeNotFound, "this link does not work")
	}
	return UnsubscribeToken{
		OrgID:    formatUUID([16]byte(raw[:16])),
		MemberID: formatUUID([16]byte(raw[16:idsLength])),
	}, nil
}

func unsubscribeMAC(key UnsubscribeKey, ids []byte) []byte {
	mac := hmac.New(sha256.New, key[:])
	mac.Write([]byte("unsubscribe"))
	mac.Write(ids)
	return mac.Sum(nil)[:unsubscribeMACLength]
}

// String returns a text without the key.
func (UnsubscribeKey) String() string { return "unsubscribe key" }

// GoString returns a text without the key.
func (k UnsubscribeKey) GoString() string { return k.String() }

// LogValue returns a text without the key.
func (k UnsubscribeKey) LogValue() slog.Value { return slog.StringValue(k.String()) }
