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

// AccountState is a person's account as its events leave it: what a person signs in to the portal
// with, whatever organizations the person is a member of. The zero value is no account.
type AccountState struct {
	ID string
	// Email as it was given first: mails to the person go there, however the address was typed.
	// NormalizeEmail compares.
	Email     string
	CreatedAt time.Time
}

// AccountKey returns the name of the account of an address: the SHA-256 of its NormalizeEmail, 64
// hexadecimal digits in lower case. Addresses that compare as one have one account.
func AccountKey(email string) string { return keyOfForm(NormalizeEmail(email)) }

// OtherAccountKeys returns the names under which the account of an address is kept if it is not
// under its AccountKey: those that it has from before domains were compared in their IDNA form, and
// last the one that a new account gets when its AccountKey names another person's account from that
// time. The form of then took some addresses for one another, so what is found under a name must be
// checked with AccountState.IsOf.
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

// formerNormalEmail is NormalizeEmail as it was before domains were compared in their IDNA form:
// all of the address in lower case. Accounts are kept under names made of it.
func formerNormalEmail(s string) string {
	return norm.NFC.String(strings.Map(func(r rune) rune {
		lower := unicode.ToLower(r)
		if r >= utf8.RuneSelf && lower < utf8.RuneSelf {
			return r
		}
		return lower
	}, norm.NFC.String(strings.TrimSpace(s))))
}

// Exists says whether there is such an account.
func (s AccountState) Exists() bool { return s.ID != "" }

// IsOf reports whether the account exists and is that of an address.
func (s AccountState) IsOf(email string) bool {
	return s.Exists() && NormalizeEmail(s.Email) == NormalizeEmail(email)
}

// DecideCreateAccount makes an account; one that is there already is no event. Id and address are
// given clean.
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
