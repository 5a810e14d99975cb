package broker_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"hubcloud/streams"
	"hubcloud/streams/broker"
	"hubcloud/streams/streamstest"
)

// tapConn logs in to the account TAP over the listener. What the server reports about it comes to
// the channel.
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

// makeLog makes a stream like a hub's log with n events, in its shard.
func makeLog(t testing.TB, conns *streams.Conns, shard, n int) (stream, hub string) {
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
			Source:      "log." + hub + ".>",
			Destination: "feed." + hub + ".>",
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		if _, err := js.Publish(t.Context(), "log."+hub+".event.device", fmt.Appendf(nil, "%d", i)); err != nil {
			t.Fatal(err)
		}
	}
	return stream, hub
}

// TestTapReads: with one connection, a user of the account TAP hears every shard's feed and reads
// every shard's logs.
func TestTapReads(t *testing.T) {
	t.Parallel()
	s := start(t, config(t, t.TempDir()))
	conns := connect(t, s)
	nc, reports := tapConn(t, s)
	feed, err := nc.SubscribeSync(streams.AnyFeed)
	if err != nil {
		t.Fatal(err)
	}
	if err := nc.FlushTimeout(patient); err != nil {
		t.Fatal(err)
	}
	for shard := range conns.Shards {
		stream, hub := makeLog(t, conns, shard, 3)
		for n := range 3 {
			msg, err := feed.NextMsg(patient)
			if err != nil || msg.Subject != "feed."+hub+".event.device" ||
				msg.Header.Get("Nats-Sequence") != fmt.Sprint(n+1) {
				t.Fatalf("feed of shard %d: %v, %v", shard, msg, err)
			}
		}
		js, err := jetstream.NewWithAPIPrefix(nc, streams.ShardAPI(shard))
		if err != nil {
			t.Fatal(err)
		}
		found, err := js.Stream(t.Context(), stream)
		if err != nil || found.CachedInfo().State.Msgs != 3 {
			t.Fatalf("info in shard %d: %v, %v", shard, found, err)
		}
		msg, err := found.GetMsg(t.Context(), 2)
		if err != nil || string(msg.Data) != "1" {
			t.Fatalf("get in shard %d: %v, %v", shard, msg, err)
		}
		if last, err := found.GetLastMsgForSubject(t.Context(), "log."+hub+".event.device"); err != nil ||
			string(last.Data) != "2" {
			t.Fatalf("last in shard %d: %v, %v", shard, last, err)
		}
		// A batch is many answers to one request.
		inbox := nc.NewInbox()
		answers, err := nc.SubscribeSync(inbox)
		if err != nil {
			t.Fatal(err)
		}
		if err := nc.PublishRequest(streams.ShardAPI(shard)+".DIRECT.GET."+stream, inbox, []byte(`{"seq":1,"batch":10}`)); err != nil {
			t.Fatal(err)
		}
		for n := range 4 {
			msg, err := answers.NextMsg(patient)
			if err != nil || (n < 3 && string(msg.Data) != fmt.Sprint(n)) ||
				(n == 3 && msg.Header.Get("Status") != "204") {
				t.Fatalf("batch in shard %d, answer %d: %v, %v", shard, n, msg, err)
			}
		}
		names := js.StreamNames(t.Context())
		listed := false
		for name := range names.Name() {
			listed = listed || name == stream
		}
		if names.Err() != nil || !listed {
			t.Fatalf("names in shard %d: %v, %v", shard, listed, names.Err())
		}
	}
	select {
	case err := <-reports:
		t.Error("the server reports", err)
	default:
	}
}

// TestTapCanDoNothingElse tries what a tap must not be able to do; each time the server itself must
// say that it refuses.
func TestTapCanDoNothingElse(t *testing.T) {
	t.Parallel()
	s := start(t, config(t, t.TempDir()))
	conns := connect(t, s)
	stream, hub := makeLog(t, conns, 0, 3)
	nc, reports := tapConn(t, s)
	streamstest.TryForbidden(t, nc, reports, 0, stream, hub)
	second, _ := tapConn(t, s)
	streamstest.TryReplies(
		t, nc, reports, 0, stream, hub, conns.Shards[0], streamstest.Witness{Conn: second},
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
		t.Errorf("the log is another afterwards: %+v, %+v", info.State, info.Config)
	}
	if _, err := js.Stream(t.Context(), "MINE"); !errors.Is(err, jetstream.ErrStreamNotFound) {
		t.Errorf("a stream was made: %v", err)
	}
}

// TestTapUserIsMadeLater: an installation from before there were taps gets a user for them, and
// keeps the others.
func TestTapUserIsMadeLater(t *testing.T) {
	t.Parallel()
	c := config(t, t.TempDir())
	first := start(t, c)
	stop(t, first)
	path := filepath.Join(c.DataDir, "nats-credentials.json")
	before := first.Credentials()
	delete(before.Users, streams.AccountTap)
	if err := before.Write(path); err != nil {
		t.Fatal(err)
	}
	second := start(t, c)
	kept, err := streams.ReadCredentials(path)
	if err != nil || kept.Users[streams.AccountCloud] != before.Users[streams.AccountCloud] ||
		kept.Users[streams.AccountTap].Password == "" {
		t.Fatalf("%v; users %d", err, len(kept.Users))
	}
	tapConn(t, second)
}

// TestLayoutOfAnInstallation: the accounts are told apart, and only the shards give something away,
// to those of taps alone.
func TestLayoutOfAnInstallation(t *testing.T) {
	t.Parallel()
	s := start(t, config(t, t.TempDir()))
	layout, err := broker.NewLayout(s.Credentials())
	if err != nil {
		t.Fatal(err)
	}
	for _, account := range layout.Accounts {
		shard, tap := strings.HasPrefix(string(account.Name), "SHARD"), slices.Contains(streams.TapAccounts(), account.Name)
		if users := len(account.Users); tap && account.Name != streams.AccountTap {
			if users != 0 {
				t.Errorf("account %s has %d users beside its tap", account.Name, users)
			}
			continue
		}
		if (len(account.Exports) > 0) != shard || (len(account.Imports) > 0) != tap ||
			len(account.Users) != 1 {
			t.Errorf(
				"account %s: %d exports, %d imports, %d users", account.Name, len(account.Exports),
				len(account.Imports), len(account.Users),
			)
		}
		if (account.Users[0].Permissions != nil) != (account.Name == streams.AccountTap) {
			t.Errorf("account %s: permissions %v", account.Name, account.Users[0].Permissions)
		}
		for _, export := range account.Exports {
			if !slices.Equal(export.To, streams.TapAccounts()) {
				t.Errorf("account %s exports %s to %s", account.Name, export.Subject, export.To)
			}
		}
		if strings.Contains(layout.Text(), s.Credentials().Users[account.Name].Password) {
			t.Errorf("the configuration shows the password of %s", account.Name)
		}
	}
	// Credentials from before there were taps have an account TAP, and nobody in it that the server
	// knows by itself.
	old := s.Credentials()
	delete(old.Users, streams.AccountTap)
	layout, err = broker.NewLayout(old)
	if err != nil || len(layout.Accounts[2].Users) != 0 ||
		slices.Contains(layout.CalloutUsers, "tap") {
		t.Errorf("%+v, %v", layout.Accounts[2].Users, err)
	}
}
