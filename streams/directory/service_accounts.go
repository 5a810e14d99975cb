package directory

import (
	"context"

	"hubcloud/domain"
)

// Account returns the account of an address with every event that was acknowledged before the call;
// the zero state when there is none.
func (s *Service) Account(ctx context.Context, email string) (domain.AccountState, error) {
	account, _, err := s.accounts.Get(ctx, domain.AccountKey(email))
	return account, err
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
	account, _, err = s.accounts.Update(
		ctx, domain.AccountKey(email),
		func(account domain.AccountState) ([]domain.Event, error) {
			return domain.DecideCreateAccount(account, o, id, email), nil
		},
	)
	return account, err
}
