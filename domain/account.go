package domain

import (
	"crypto/sha256"
	"encoding/hex"
	"time"
)

// AccountState is a person's account as its events leave it: what a person signs in to the portal with, whatever organizations the person is
// a member of. The zero value is no account.
type AccountState struct {
	ID string
	// Email as it was given first; NormalizeEmail compares.
	Email     string
	CreatedAt time.Time
}

// AccountKey names the account of an address: the SHA-256 of its NormalizeEmail, 64 hexadecimal digits in lower case. Addresses that compare
// as one have one account.
func AccountKey(email string) string {
	sum := sha256.Sum256([]byte(NormalizeEmail(email)))
	return hex.EncodeToString(sum[:])
}

// Exists says whether there is such an account.
func (s AccountState) Exists() bool { return s.ID != "" }

// DecideCreateAccount makes an account; one that is there already is no event. Id and address are given clean.
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
