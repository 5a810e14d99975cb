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

// IdentifiedAccount returns the account that is bound to an identity; the zero state when there is
// none.
func (s *Service) IdentifiedAccount(
	ctx context.Context, identity domain.Identity,
) (domain.AccountState, error) {
	found, _, err := s.accounts.Get(ctx, identity.Key())
	if err != nil || !found.Exists() {
		return domain.AccountState{}, err
	}
	account, err := s.Account(ctx, found.Email)
	if err != nil || account.Identity != identity { // it was bound to another one since
		return domain.AccountState{}, err
	}
	return account, nil
}

// BindIdentity binds the account of an address to an identity, and creates the account if there is
// none. The address must be the result of domain.CleanEmail. It returns forbidden for an account
// that is bound to another identity of the same issuer, unless replace is set.
func (s *Service) BindIdentity(
	ctx context.Context, o domain.Origin, email string, identity domain.Identity, replace bool,
) (domain.AccountState, error) {
	o = s.stamp(o)
	if _, err := s.EnsureAccount(ctx, o, email); err != nil {
		return domain.AccountState{}, err
	}
	account, _, err := s.accounts.Update(
		ctx, domain.AccountKey(email),
		func(account domain.AccountState) ([]domain.Event, error) {
			return domain.DecideBindIdentity(account, o, identity, replace)
		},
	)
	if err != nil {
		return domain.AccountState{}, err
	}
	// Also for a repeated call: the process may have ended before.
	_, _, err = s.accounts.Update(
		ctx, identity.Key(), func(found domain.AccountState) ([]domain.Event, error) {
			return domain.DecideFindByIdentity(found, o, account), nil
		},
	)
	return account, err
}
