package broker_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"hubcloud/streams"
	"hubcloud/streams/broker"
)

// tapConn logs in to the account TAP over the listener. The channel receives the connection's
// asynchronous errors.
func tapConn(t testing.TB, s *broker.Server) (*nats.Conn, <-chan error) {
	t.Helper()
	reports := make(chan error, 100)
	user := s.Credentials().Users[streams.AccountTap]
	nc, err := nats.Connect(
		s.Credentials().URL, nats.UserInfo(user.User, user.Password),
		nats.CustomInboxPrefix(streams.TapInbox(user.User)),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { reports <- err }),
	)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	return nc, reports
}

// createLog creates a stream like a hub's log in a shard, with n messages.
func createLog(t testing.TB, conns *streams.Conns, shard, n int) (stream, hub string) {
	t.Helper()
	hub = fmt.Sprintf("hub-tapt-test-%04d", shard)
	js, err := jetstream.New(conns.Shards[shard])
	if err != nil {
		t.Fatal(err)
	}
	stream = "HUB_" + hub
	_, err = js.CreateStream(t.Context(), jetstream.StreamConfig{
		Name: stream, Subjects: []string{"log." + hub + ".>"}, AllowDirect: true,
		RePublish: &jetstream.RePublish{
			Source: "log." + hub + ".>", Destination: "feed." + hub + ".>",
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		_, err := js.Publish(t.Context(), "log."+hub+".event.device", fmt.Appendf(nil, "%d", i))
		if err != nil {
			t.Fatal(err)
		}
	}
	return stream, hub
}

// TestTapReads checks that one connection to the account TAP receives the feeds of all shards and
// reads their logs.
func TestTapReads(t *testing.T) {
	t.Parallel()
	s := start(t, config(t, t.TempDir()))
	conns := connect(t, s)
	nc, reports := tapConn(t, s)
	if s.HasSubscribers(streams.ShardAccount(0), "feed.hub-tapt-test-0000.event.device") {
		t.Error("the feed has a subscriber before anybody has subscribed")
	}
	feed, err := nc.SubscribeSync(streams.AnyFeed)
	if err != nil {
		t.Fatal(err)
	}
	if err := nc.FlushTimeout(testTimeout); err != nil {
		t.Fatal(err)
	}
	for shard := range conns.Shards {
		stream, hub := createLog(t, conns, shard, 3)
		if !s.HasSubscribers(streams.ShardAccount(shard), "feed."+hub+".event.device") {
			t.Errorf("shard %d: the tap does not count as a subscriber of the feed", shard)
		}
		for n := range 3 {
			msg, err := feed.NextMsg(testTimeout)
			if err != nil || msg.Subject != "feed."+hub+".event.device" ||
				msg.Header.Get("Nats-Sequence") != fmt.Sprint(n+1) {
				t.Fatalf("feed of shard %d: got %v, error %v, want event %d", shard, msg, err, n+1)
			}
		}
		js, err := jetstream.NewWithAPIPrefix(nc, streams.ShardAPI(shard))
		if err != nil {
			t.Fatal(err)
		}
		found, err := js.Stream(t.Context(), stream)
		if err != nil || found.CachedInfo().State.Msgs != 3 {
			t.Fatalf(
				"stream info in shard %d: got %v, error %v, want 3 messages", shard, found, err,
			)
		}
		msg, err := found.GetMsg(t.Context(), 2)
		if err != nil || string(msg.Data) != "1" {
			t.Fatalf("message 2 of shard %d: got %v, error %v, want data 1", shard, msg, err)
		}
		last, err := found.GetLastMsgForSubject(t.Context(), "log."+hub+".event.device")
		if err != nil || string(last.Data) != "2" {
			t.Fatalf("last message of shard %d: got %v, error %v, want data 2", shard, last, err)
		}
		// A batch has several answers to one request.
		inbox := nc.NewInbox()
		answers, err := nc.SubscribeSync(inbox)
		if err != nil {
			t.Fatal(err)
		}
		subject := streams.ShardAPI(shard) + ".DIRECT.GET." + stream
		if err := nc.PublishRequest(subject, inbox, []byte(`{"seq":1,"batch":10}`)); err != nil {
			t.Fatal(err)
		}
		for n := range 4 {
			msg, err := answers.NextMsg(testTimeout)
			if err != nil || (n < 3 && string(msg.Data) != fmt.Sprint(n)) ||
				(n == 3 && msg.Header.Get("Status") != "204") {
				t.Fatalf(
					"batch of shard %d, answer %d: got %v, error %v, want messages 0 to 2, the end",
					shard, n, msg, err,
				)
			}
		}
		names := js.StreamNames(t.Context())
		listed := false
		for name := range names.Name() {
			listed = listed || name == stream
		}
		if names.Err() != nil || !listed {
			t.Fatalf(
				"stream names of shard %d: got %s: %v, error %v", shard, stream, listed,
				names.Err(),
			)
		}
	}
	select {
	case err := <-reports:
		t.Errorf("asynchronous error of the connection: got %v, want none", err)
	default:
	}
}

// TestTapIsReadOnly tries what a tap must not do. The server must reject each attempt.
func TestTapIsReadOnly(t *testing.T) {
	t.Parallel()
	s := start(t, config(t, t.TempDir()))
	conns := connect(t, s)
	stream, hub := createLog(t, conns, 0, 3)
	nc, reports := tapConn(t, s)
	tryForbidden(t, nc, reports, 0, stream, hub)
	second, _ := tapConn(t, s)
	tryReplies(
		t, nc, reports, 0, stream, hub, conns.Shards[0], witness{Conn: second},
	)

	js, err := jetstream.New(conns.Shards[0])
	if err != nil {
		t.Fatal(err)
	}
	found, err := js.Stream(t.Context(), stream)
	if err != nil {
		t.Fatal(err)
	}
	info := found.CachedInfo()
	if info.State.Msgs != 4 || info.State.Consumers != 0 || info.Config.MaxMsgs > 0 {
		t.Errorf(
			"log after the attempts: got %+v, %+v, want 4 messages, no consumer and no limit",
			info.State, info.Config,
		)
	}
	if _, err := js.Stream(t.Context(), "MINE"); !errors.Is(err, jetstream.ErrStreamNotFound) {
		t.Errorf("stream of the tap: got %v, want ErrStreamNotFound", err)
	}
}

// TestLayoutOfAnInstallation checks that only shards export anything, and only to the accounts of
// taps, and that the configuration contains no password.
func TestLayoutOfAnInstallation(t *testing.T) {
	t.Parallel()
	s := start(t, config(t, t.TempDir()))
	layout, err := broker.NewLayout(s.Credentials())
	if err != nil {
		t.Fatal(err)
	}
	for _, account := range layout.Accounts {
		shard := strings.HasPrefix(string(account.Name), "SHARD")
		tap := slices.Contains(streams.TapAccounts(), account.Name)
		if users := len(account.Users); tap && account.Name != streams.AccountTap {
			if users != 0 {
				t.Errorf(
					"account %s: got %d users, want none before a tap is created", account.Name,
					users,
				)
			}
			continue
		}
		if (len(account.Exports) > 0) != shard || (len(account.Imports) > 0) != tap ||
			len(account.Users) != 1 {
			t.Errorf(
				"account %s: got %d exports, %d imports, %d users, want one user, exports of "+
					"shards and imports of taps only",
				account.Name, len(account.Exports), len(account.Imports), len(account.Users),
			)
		}
		if (account.Users[0].Permissions != nil) != (account.Name == streams.AccountTap) {
			t.Errorf(
				"account %s: got permissions %v, want them for TAP only", account.Name,
				account.Users[0].Permissions,
			)
		}
		for _, export := range account.Exports {
			if !slices.Equal(export.To, streams.TapAccounts()) {
				t.Errorf(
					"account %s: exports %s to %s, want to taps only", account.Name, export.Subject,
					export.To,
				)
			}
		}
		if strings.Contains(layout.Text(), s.Credentials().Users[account.Name].Password) {
			t.Errorf("the configuration contains the password of %s", account.Name)
		}
	}
}
