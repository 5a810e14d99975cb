package tap

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"hubcloud/streams"
	"hubcloud/streams/jsapi"
)

// accountsKey is the bucket's key for the assignment of accounts to users. It does not begin with
// keyPrefix, so no user's key collides with it.
const accountsKey = "tap-accounts"

// maxConflicts bounds the retries of an update that lost a race.
const maxConflicts = 100

// accounts assigns broker accounts to users.
type accounts struct {
	// Numbers maps a user's name to the number of its account (streams.TapAccount).
	Numbers map[string]int `json:"numbers"`
	// Next is the number at which the search for a free account starts, so that the account
	// released last is reused last.
	Next int `json:"next"`
}

// Account returns the user's account and assigns one if the user has none. It returns ErrUnknown,
// ErrFull or an error of the broker.
func (u *Users) Account(ctx context.Context, name string) (streams.Account, error) {
	if _, _, err := u.find(ctx, name); err != nil {
		return "", err
	}
	number, err := u.number(ctx, name)
	return streams.TapAccount(number), err
}

// Release frees the account of a revoked user. It does nothing if the user has no account or has
// been created again.
func (u *Users) Release(ctx context.Context, name string) error {
	return u.change(ctx, func(a *accounts) (bool, error) {
		if _, ok := a.Numbers[name]; !ok {
			return false, nil
		}
		if _, _, err := u.find(ctx, name); !errors.Is(err, ErrUnknown) {
			return false, err
		}
		delete(a.Numbers, name)
		return true, nil
	})
}

// number returns the number of the user's account and assigns a free one if the user has none.
func (u *Users) number(ctx context.Context, name string) (number int, err error) {
	err = u.change(ctx, func(a *accounts) (bool, error) {
		var ok bool
		if number, ok = a.Numbers[name]; ok {
			return false, nil
		}
		if len(a.Numbers) >= streams.MaxTaps {
			if err := u.releaseOrphans(ctx, a); err != nil {
				return false, err
			}
		}
		if len(a.Numbers) >= streams.MaxTaps {
			return false, ErrFull
		}
		used := slices.Collect(maps.Values(a.Numbers))
		for number = a.Next % streams.MaxTaps; slices.Contains(used, number); {
			number = (number + 1) % streams.MaxTaps
		}
		a.Numbers[name], a.Next = number, (number+1)%streams.MaxTaps
		return true, nil
	})
	return number, err
}

// releaseOrphans removes accounts without a user from a. They remain when a Create or a revocation
// is interrupted.
func (u *Users) releaseOrphans(ctx context.Context, a *accounts) error {
	for name := range a.Numbers {
		switch _, _, err := u.find(ctx, name); {
		case errors.Is(err, ErrUnknown):
			delete(a.Numbers, name)
		case err != nil:
			return err
		}
	}
	return nil
}

// change reads the accounts, calls fn, and stores the accounts if fn reports a change. It starts
// over if the accounts were stored by another process in between, so fn may run several times.
func (u *Users) change(ctx context.Context, fn func(*accounts) (changed bool, err error)) error {
	for range maxConflicts {
		var a accounts
		stored, err := jsapi.NewBucket(u.nc, u.kv.Bucket()).GetJSON(ctx, accountsKey, &a)
		if err != nil {
			return fmt.Errorf("read tap accounts: %w", err)
		}
		if a.Numbers == nil {
			a.Numbers = map[string]int{}
		}
		if changed, err := fn(&a); err != nil || !changed {
			return err
		}
		text, err := json.Marshal(a)
		if err != nil {
			return err
		}
		if _, err = u.kv.Update(ctx, accountsKey, text, stored.Revision); !jsapi.IsConflict(err) {
			return err
		}
	}
	return fmt.Errorf("update tap accounts: %d conflicts in a row", maxConflicts)
}
