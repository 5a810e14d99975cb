package tap_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"hubcloud/streams"
	"hubcloud/streams/streamstest"
	"hubcloud/streams/tap"
)

func store(t testing.TB) (*tap.Users, *streams.Buckets) {
	t.Helper()
	conns := streamstest.Start(t)
	buckets, err := streams.OpenBuckets(t.Context(), conns, 1)
	streamstest.Must(t, err)
	return tap.NewUsers(conns.Cloud, buckets.Installation), buckets
}

// TestLife checks that a user is admitted with its current password only, and not once revoked.
func TestLife(t *testing.T) {
	t.Parallel()
	s, buckets := store(t)
	began := time.Now()
	admitted := func(u streams.User) bool {
		t.Helper()
		account, err := s.Admit(t.Context(), u.User, u.Password)
		streamstest.Must(t, err)
		return account != ""
	}
	first, err := s.Create(t.Context(), "analytics", began)
	if err != nil || !admitted(first) {
		t.Fatalf("create analytics: %v", err)
	}
	other, err := s.Create(t.Context(), "billing", began)
	if err != nil || admitted(streams.User{User: other.User, Password: first.Password}) {
		t.Errorf("billing was admitted with another user's password, or %v", err)
	}
	for _, u := range []streams.User{
		{User: first.User}, {User: first.User, Password: "x"}, {User: "tap-unknown", Password: "x"},
		{User: "tap", Password: "x"},
		{User: "analytics", Password: first.Password}, {User: "tap-*", Password: "x"},
		{User: "tap->", Password: "x"}, {User: "tap-a.b"}, {}} {
		if admitted(u) {
			t.Errorf("user %q with password %q was admitted", u.User, u.Password)
		}
	}
	if _, err := s.Create(t.Context(), "analytics", began); !errors.Is(err, tap.ErrExists) {
		t.Errorf("second create: got %v, want ErrExists", err)
	}
	entry, err := buckets.Installation.Get(t.Context(), "tap.analytics")
	if err != nil || bytes.Contains(entry.Value(), []byte(first.Password)) {
		t.Errorf("stored user: got %s, %v; want no password in it", entry.Value(), err)
	}

	later := began.Add(time.Minute)
	second, err := s.Renew(t.Context(), "analytics", later)
	if err != nil || !admitted(second) || admitted(first) || second.User != first.User {
		t.Errorf("renew: got %v, want only the new password to be admitted", err)
	}
	all, err := s.List(t.Context())
	if err != nil || len(all) != 2 || all[0].Name != "analytics" ||
		all[0].User != "tap-analytics" ||
		!all[0].CreatedAt.Equal(began) ||
		!all[0].RenewedAt.Equal(later) {
		t.Errorf("list: got %+v, %v", all, err)
	}

	if err := s.Revoke(t.Context(), "analytics"); err != nil || admitted(second) {
		t.Errorf("revoke: got %v, want nil and the user rejected", err)
	}
	for what, do := range map[string]func(context.Context) error{
		"revoke": func(ctx context.Context) error { return s.Revoke(ctx, "analytics") },
		"renew": func(ctx context.Context) error {
			_, err := s.Renew(ctx, "analytics", later)
			return err
		},
	} {
		if err := do(t.Context()); !errors.Is(err, tap.ErrUnknown) {
			t.Errorf("%s an unknown user: got %v, want ErrUnknown", what, err)
		}
	}
	again, err := s.Create(t.Context(), "analytics", later)
	if err != nil || !admitted(again) || admitted(second) {
		t.Errorf("create again: got %v, want nil and only the newest password admitted", err)
	}
}

// TestEachUserHasAnAccount checks that no two users share an account, and that a revoked user's
// account is reused.
func TestEachUserHasAnAccount(t *testing.T) {
	t.Parallel()
	s, _ := store(t)
	users := map[string]streams.User{}
	// Concurrent creates, as from several replicas.
	var mu sync.Mutex
	var all sync.WaitGroup
	for n := range streams.MaxTaps - 1 {
		all.Go(func() {
			name := fmt.Sprint("tap", n)
			user, err := s.Create(t.Context(), name, time.Now())
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			users[name] = user
		})
	}
	all.Wait()
	last, err := s.Create(t.Context(), "last", time.Now())
	streamstest.Must(t, err)
	users["last"] = last
	taken := map[streams.Account]string{}
	for range 2 {
		for name, user := range users {
			account, err := s.Admit(t.Context(), user.User, user.Password)
			if other, ok := taken[account]; err != nil || account == "" || ok && other != name {
				t.Fatalf(
					"admit %s: got account %q (also assigned to %q), %v", name, account, other, err,
				)
			}
			taken[account] = name
			if !slices.Contains(streams.TapAccounts()[1:], account) {
				t.Errorf(
					"admit %s: got account %s, want one of the tap accounts but the first", name,
					account,
				)
			}
		}
	}
	if len(taken) != streams.MaxTaps {
		t.Fatalf("accounts: got %d, want %d", len(taken), streams.MaxTaps)
	}
	if _, err := s.Create(t.Context(), "late", time.Now()); !errors.Is(err, tap.ErrFull) {
		t.Errorf("create one user too many: got %v, want ErrFull", err)
	}
	if err := s.Release(t.Context(), "tap3"); err != nil { // not revoked
		t.Fatal(err)
	}
	if _, err := s.Create(t.Context(), "late", time.Now()); !errors.Is(err, tap.ErrFull) {
		t.Errorf("create one user too many: got %v, want ErrFull", err)
	}
	err = errors.Join(s.Revoke(t.Context(), "tap3"), s.Release(t.Context(), "tap3"))
	streamstest.Must(t, err)
	late, err := s.Create(t.Context(), "late", time.Now())
	streamstest.Must(t, err)
	if account, err := s.Admit(t.Context(), late.User, late.Password); taken[account] != "tap3" ||
		err != nil {
		t.Errorf("admit late: got the account of %q, %v; want that of tap3", taken[account], err)
	}
	// A revocation that was interrupted before Release does not use up an account.
	streamstest.Must(t, s.Revoke(t.Context(), "tap4"))
	if _, err := s.Create(t.Context(), "later", time.Now()); err != nil {
		t.Error(err)
	}
}

// TestNames checks which names are allowed: a name is part of a subject and of a login.
func TestNames(t *testing.T) {
	t.Parallel()
	s, _ := store(t)
	for _, name := range []string{
		"", "A", "a.b", "a b", "*", ">", "-a", "ä", "a\n",
		"12345678901234567890123456789012345678901",
	} {
		if _, err := s.Create(t.Context(), name, time.Now()); !errors.Is(err, tap.ErrName) {
			t.Errorf("create %q: got %v, want ErrName", name, err)
		}
		if err := s.Revoke(t.Context(), name); !errors.Is(err, tap.ErrName) {
			t.Errorf("revoke %q: got %v, want ErrName", name, err)
		}
	}
	if _, err := s.Create(t.Context(), "0_a-z", time.Now()); err != nil {
		t.Error(err)
	}
}
