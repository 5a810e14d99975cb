package identity_test

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"hubcloud/hubbridge/identity"
	"hubcloud/streams"
	"hubcloud/streams/streamstest"
)

// logIn connects to the NATS listener as user.
func (i *installation) logIn(
	t testing.TB, user streams.User, opts ...nats.Option,
) (*nats.Conn, error) {
	t.Helper()
	if user.User != "" {
		opts = append(opts, nats.CustomInboxPrefix(streams.TapInbox(user.User)))
	}
	opts = append(opts, nats.UserInfo(user.User, user.Password), nats.NoReconnect())
	nc, err := nats.Connect(i.broker.Credentials().URL, opts...)
	if err == nil {
		t.Cleanup(nc.Close)
	}
	return nc, err
}

// TestWrongPasswordsPause: a client that tries one password after the other gets no answer after some, so it
// must wait, and another one at the same address is admitted meanwhile.
func TestWrongPasswordsPause(t *testing.T) {
	t.Parallel()
	i := start(t)
	well, err := i.taps.Create(t.Context(), "analytics", time.Now())
	streamstest.Must(t, err)
	wrong := streams.User{User: "another", Password: "guess"}
	began, last := time.Now(), error(nil)
	for tries := 0; tries < 30 && !errors.Is(last, os.ErrDeadlineExceeded); tries++ {
		if _, last = i.logIn(t, wrong, nats.Timeout(time.Second)); last == nil {
			t.Fatal("a wrong password: connected")
		}
	}
	if !errors.Is(last, os.ErrDeadlineExceeded) && time.Since(began) < 50*time.Second {
		t.Errorf("30 wrong passwords: the last got %v, want no answer", last)
	}
	if _, err := i.logIn(t, well); err != nil {
		t.Error(err)
	}
}

// TestTap tries a wrong password, unknown names, the service's names and no name. Those of a tap
// allow what a tap may do, which package broker tries. Renewing the password of a tap and revoking
// the tap cut its open connections, and the old password is rejected.
func TestTap(t *testing.T) {
	t.Parallel()
	i := start(t)
	user, err := i.taps.Create(t.Context(), "analytics", time.Now())
	streamstest.Must(t, err)
	for _, wrong := range []streams.User{
		{User: user.User}, {User: user.User, Password: user.Password + "x"},
		{User: "tap-nobody", Password: user.Password},
		{User: "tap", Password: user.Password}, {User: "cloud", Password: user.Password}, {},
	} {
		if _, err := i.logIn(t, wrong); !errors.Is(err, nats.ErrAuthorization) {
			t.Errorf("log in as %q: got %v, want %v", wrong.User, err, nats.ErrAuthorization)
		}
	}

	other, err := i.taps.Create(t.Context(), "other", time.Now())
	streamstest.Must(t, err)
	kept, err := i.logIn(t, other)
	streamstest.Must(t, err)
	cut := func(user streams.User, change func() error) {
		t.Helper()
		closed := make(chan struct{})
		onClosed := nats.ClosedHandler(func(*nats.Conn) { close(closed) })
		if _, err := i.logIn(t, user, onClosed); err != nil {
			t.Fatal(err)
		}
		account, err := i.taps.Account(t.Context(), "analytics")
		streamstest.Must(t, err)
		streamstest.Must(t, change())
		if n, err := identity.DisconnectTap(t.Context(), i.conns, account, user.User); err != nil || n != 1 {
			t.Errorf("DisconnectTap = %d, %v, want 1", n, err)
		}
		select {
		case <-closed:
		case <-time.After(testTimeout):
			t.Error("the connection is still open after a minute")
		}
		if _, err := i.logIn(t, user); !errors.Is(err, nats.ErrAuthorization) {
			t.Errorf("old password: got %v, want %v", err, nats.ErrAuthorization)
		}
	}
	var second streams.User
	cut(
		user,
		func() error { second, err = i.taps.Renew(t.Context(), "analytics", time.Now()); return err },
	)
	cut(second, func() error { return i.taps.Revoke(t.Context(), "analytics") })
	if err := kept.FlushTimeout(testTimeout); err != nil {
		t.Errorf("connection of another tap: %v", err)
	}
}
