package domain

import (
	"crypto/sha256"
	"encoding/hex"
	"time"
)

// AccountState is the account with which a person signs in to the portal, folded from its events.
// It is independent of the person's memberships. The zero value is no account.
type AccountState struct {
	ID string
	// Email is the address as it was first entered; mails go there. Compare with NormalizeEmail.
	Email     string
	CreatedAt time.Time
	// Identity is the person at the identity provider that the account is bound to; zero for none.
	Identity Identity
}

// AccountKey returns the key of an address's account: the SHA-256 of its NormalizeEmail, as 64
// hexadecimal digits in lower case. Addresses that compare as equal share an account.
func AccountKey(email string) string {
	sum := sha256.Sum256([]byte(NormalizeEmail(email)))
	return hex.EncodeToString(sum[:])
}

// Exists reports whether the account exists.
func (s AccountState) Exists() bool { return s.ID != "" }

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
	case AccountIdentityBound:
		s.ID, s.Email, s.Identity = f.AccountID, f.Email, f.Identity
		return s, nil
	default:
		return s, misplaced(e, "account")
	}
}
