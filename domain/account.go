package domain

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// AccountState is the account with which a person signs in to the portal, folded from its events.
// It is independent of the person's memberships. The zero value is no account.
type AccountState struct {
	ID string
	// Email is the address as it was first entered; mails go there. Compare with NormalizeEmail.
	Email     string
	CreatedAt time.Time
}

// AccountKey returns the key of an address's account: the SHA-256 of its NormalizeEmail, as 64
// hexadecimal digits in lower case. Addresses that compare as equal share an account.
func AccountKey(email string) string { return keyOfForm(NormalizeEmail(email)) }

// OtherAccountKeys returns the keys under which the account of an address may be stored if it is
// not under its AccountKey. The first are those from before domains were compared in their IDNA
// form. The last is for a new account whose AccountKey is taken by another person's account from
// that time: the former comparison treated some different addresses as equal. An account found
// under one of these keys must be checked with AccountState.IsOf.
func OtherAccountKeys(email string) []string {
	normal := NormalizeEmail(email)
	forms := []string{formerNormalEmail(email), formerNormalEmail(normal)}
	if local, host := splitEmail(normal); host != "" {
		if unicodeHost, err := mailDomains.ToUnicode(host); err == nil {
			forms = append(forms, formerNormalEmail(local+"@"+unicodeHost))
		}
	}
	var keys []string
	for _, form := range forms {
		if key := keyOfForm(form); form != normal && !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	return append(keys, keyOfForm("2 "+normal))
}

func keyOfForm(form string) string {
	sum := sha256.Sum256([]byte(form))
	return hex.EncodeToString(sum[:])
}

// formerNormalEmail is NormalizeEmail from before domains were compared in their IDNA form: the
// whole address in lower case. Older accounts are stored under keys made from it.
func formerNormalEmail(s string) string {
	return norm.NFC.String(strings.Map(func(r rune) rune {
		lower := unicode.ToLower(r)
		if r >= utf8.RuneSelf && lower < utf8.RuneSelf {
			return r
		}
		return lower
	}, norm.NFC.String(strings.TrimSpace(s))))
}

// Exists reports whether the account exists.
func (s AccountState) Exists() bool { return s.ID != "" }

// IsOf reports whether the account exists and belongs to an address.
func (s AccountState) IsOf(email string) bool {
	return s.Exists() && NormalizeEmail(s.Email) == NormalizeEmail(email)
}

// DecideCreateAccount creates an account; it returns no event if the account exists. The caller has
// validated the address.
func DecideCreateAccount(s AccountState, o Origin, accountID, email string) []Event {
	if s.Exists() {
		return nil
	}
	return []Event{Record(o, AccountCreated{AccountID: accountID, Email: email})}
}

// EvolveAccount folds an event into an account.
func EvolveAccount(s AccountState, e Event) (AccountState, error) {
	fact, err := e.Fact()
	if err != nil {
		return s, err
	}
	switch f := fact.(type) {
	case AccountCreated:
		return AccountState{ID: f.AccountID, Email: f.Email, CreatedAt: e.At}, nil
	default:
		return s, misplaced(e, "account")
	}
}
