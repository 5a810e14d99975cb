package tapuser

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"hubcloud/streams"
)

// accountsKey is the key under which the bucket has which account is whose. No user's key begins
// so.
const accountsKey = "tap-accounts"

// maxConflicts bounds how often a change of the accounts is tried against others'.
const maxConflicts = 100

// accounts is which account is whose.
type accounts struct {
	// Numbers has the number of each user's account (streams.TapAccount), by the user's name.
	Numbers map[string]int `json:"numbers"`
	// Next is where the search for a free one begins: one that has become free just now is taken
	// last.
	Next int `json:"next"`
}

// Account returns the account of a user. Errors: ErrUnknown, ErrFull, and those of the broker.
func (s *Store) Account(ctx context.Context, name string) (streams.Account, error) {
	if _, _, err := s.find(ctx, name); err != nil {
		return "", err
	}
	number, err := s.number(ctx, name)
	return streams.TapAccount(number), err
}

// Release gives a revoked user's account free for another. A user who has none, or who is there
// again, is left alone.
func (s *Store) Release(ctx context.Context, name string) error {
	return s.change(ctx, func(a *accounts) (bool, error) {
		if _, ok := a.Numbers[name]; !ok {
			return false, nil
		}
		if _, _, err := s.find(ctx, name); !errors.Is(err, ErrUnknown) {
			return false, err
		}
		delete(a.Numbers, name)
		return true, nil
	})
}

// number returns the number of a user's account, and takes a free one for a user who has none.
func (s *Store) number(ctx context.Context, name string) (number int, err error) {
	err = s.change(ctx, func(a *accounts) (bool, error) {
		var ok bool
		if number, ok = a.Numbers[name]; ok {
			return false, nil
		}
		if len(a.Numbers) >= streams.MaxTaps {
			if err := s.forgetUnknown(ctx, a); err != nil {
				return false, err
			}
		}
		if len(a.Numbers) >= streams.MaxTaps {
			return false, ErrFull
		}
		for number = a.Next % streams.MaxTaps; slices.Contains(slices.Collect(maps.Values(a.Numbers)), number); {
			number = (number + 1) % streams.MaxTaps
		}
		a.Numbers[name], a.Next = number, (number+1)%streams.MaxTaps
		return true, nil
	})
	return number, err
}

// forgetUnknown gives accounts free that nobody has: of users whose making or revocation was broken
// off.
func (s *Store) forgetUnknown(ctx context.Context, a *accounts) error {
	for name := range a.Numbers {
		switch _, _, err := s.find(ctx, name); {
		case errors.Is(err, ErrUnknown):
			delete(a.Numbers, name)
		case err != nil:
			return err
		}
	}
	return nil
}

// change reads the accounts, lets fn change them, and stores them if fn says so. It begins again
// when another was faster.
func (s *Store) change(ctx context.Context, fn func(*accounts) (changed bool, err error)) error {
	for range maxConflicts {
		text, revision, err := streams.Newest(ctx, s.nc, s.kv.Bucket(), accountsKey)
		if err != nil {
			return fmt.Errorf("accounts of taps: %w", err)
		}
		var a accounts
		if revision > 0 {
			if err := json.Unmarshal(text, &a); err != nil {
				return fmt.Errorf("accounts of taps: %w", err)
			}
		}
		if a.Numbers == nil {
			a.Numbers = map[string]int{}
		}
		if changed, err := fn(&a); err != nil || !changed {
			return err
		}
		if text, err = json.Marshal(a); err != nil {
			return err
		}
		if _, err = s.kv.Update(ctx, accountsKey, text, revision); !streams.IsConflict(err) {
			return err
		}
	}
	return errors.New("accounts of taps: others change them all the time")
}
