package directory

import (
	"context"
	"errors"

	"hubcloud/domain"
)

// Account returns the account of an address with every event that was acknowledged before the call;
// the zero state when there is none.
func (s *Service) Account(ctx context.Context, email string) (domain.AccountState, error) {
	account, _, err := s.accounts.Get(ctx, domain.AccountKey(email))
	if err != nil || account.IsOf(email) {
		return account, err
	}
	for _, key := range domain.OtherAccountKeys(email) {
		account, _, err := s.accounts.Get(ctx, key)
		if err != nil || account.IsOf(email) {
			return account, err
		}
	}
	return domain.AccountState{}, nil
}

// EnsureAccount returns the account of an address, and creates it if there is none. The address
// must be the result of domain.CleanEmail.
func (s *Service) EnsureAccount(
	ctx context.Context, o domain.Origin, email string,
) (domain.AccountState, error) {
	account, err := s.Account(ctx, email)
	if err != nil || account.Exists() {
		return account, err
	}
	o = s.stamp(o)
	id := s.newID(o)
	others := domain.OtherAccountKeys(email)
	for _, key := range []string{domain.AccountKey(email), others[len(others)-1]} {
		decide := func(account domain.AccountState) ([]domain.Event, error) {
			return domain.DecideCreateAccount(account, o, id, email), nil
		}
		account, _, err := s.accounts.Update(ctx, key, decide)
		if err != nil || account.IsOf(email) {
			return account, err
		}
		// The key belongs to another address, which an earlier version treated as the same one.
	}
	return domain.AccountState{}, errors.New(
		"directory: the keys of an address's account belong to other addresses",
	)
}
