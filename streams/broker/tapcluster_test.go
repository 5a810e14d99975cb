package broker_test

import (
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/crypto/bcrypt"

	"hubcloud/streams"
	"hubcloud/streams/broker"
	"hubcloud/streams/streamstest"
)

// TestTapForgesNothingInACluster checks forged reply subjects where answers come over routes, and
// another server than the one that was asked maps them to accounts.
func TestTapForgesNothingInACluster(t *testing.T) {
	t.Parallel()
	single := start(t, config(t, t.TempDir()))
	layout, err := broker.NewLayout(single.Credentials())
	streamstest.Must(t, err)
	hash, err := bcrypt.GenerateFromPassword([]byte("test"), bcrypt.MinCost)
	streamstest.Must(t, err)
	// Like the auth callout: each user is in an account of its own, with the permissions of a tap.
	for i, account := range layout.Accounts {
		for n, name := range []string{"tap-attacker", "tap-victim"} {
			if account.Name == streams.TapAccount(n) {
				permissions := streams.TapPermissions(name)
				layout.Accounts[i].Users = []broker.AccountUser{
					{Name: name, PasswordHash: string(hash), Permissions: &permissions},
				}
				layout.CalloutUsers = append(layout.CalloutUsers, name)
			}
		}
	}
	servers := streamstest.NewCluster(t, layout).Servers
	login := func(n int, user streams.User) (*nats.Conn, <-chan error) {
		t.Helper()
		reports := make(chan error, 1000)
		nc, err := nats.Connect(
			servers[n].ClientURL(),
			nats.UserInfo(user.User, user.Password),
			nats.CustomInboxPrefix(streams.TapInbox(user.User)),
			nats.ErrorHandler(
				func(_ *nats.Conn, _ *nats.Subscription, err error) { reports <- err },
			),
		)
		streamstest.Must(t, err)
		t.Cleanup(nc.Close)
		return nc, reports
	}
	owner, _ := login(0, single.Credentials().Users[streams.ShardAccount(0)])
	js, err := jetstream.New(owner)
	streamstest.Must(t, err)
	const hub, stream = "hub-tapt-test-0000", "HUB_hub-tapt-test-0000"
	streamstest.EventuallyNil(t, "the stream exists", func() error {
		_, err := js.CreateStream(t.Context(), jetstream.StreamConfig{
			Name: stream, Subjects: []string{"log." + hub + ".>"}, AllowDirect: true, Replicas: 3,
			RePublish: &jetstream.RePublish{
				Source: "log." + hub + ".>", Destination: "feed." + hub + ".>",
			},
		})
		return err
	})
	streamstest.EventuallyNil(t, "an event is stored", func() error {
		_, err := js.Publish(
			t.Context(), "log."+hub+".event.device", []byte("1"), jetstream.WithMsgID("1"),
		)
		return err
	})
	attacker, reports := login(1, streams.User{User: "tap-attacker", Password: "test"})
	var witnesses []witness
	for n := range servers {
		victim, _ := login(n, streams.User{User: "tap-victim", Password: "test"})
		second, _ := login(n, streams.User{User: "tap-attacker", Password: "test"})
		witnesses = append(witnesses,
			witness{Conn: victim, Inbox: streams.TapInbox("tap-victim"), Other: true},
			witness{Conn: second},
		)
	}
	// Any server with a copy answers a direct get, so each round may use other routes.
	for range 3 {
		tryReplies(t, attacker, reports, 0, stream, hub, owner, witnesses...)
	}
}
