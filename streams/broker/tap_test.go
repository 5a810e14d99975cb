package broker_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"hubcloud/streams"
	"hubcloud/streams/broker"
)

// tapConn logs in to the account TAP over the listener. What the server reports about it comes to the channel.
func tapConn(t testing.TB, s *broker.Server) (*nats.Conn, <-chan error) {
	t.Helper()
	reports := make(chan error, 100)
	user := s.Credentials().Users[streams.AccountTap]
	nc, err := nats.Connect(s.Credentials().URL, nats.UserInfo(user.User, user.Password), nats.CustomInboxPrefix(streams.TapInbox(user.User)),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { reports <- err }))
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
		RePublish: &jetstream.RePublish{Source: "log." + hub + ".>", Destination: "feed." + hub + ".>"},
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

// TestTapReads: with one connection, a user of the account TAP hears every shard's feed and reads every shard's logs.
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
			if err != nil || msg.Subject != "feed."+hub+".event.device" || msg.Header.Get("Nats-Sequence") != fmt.Sprint(n+1) {
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
		if last, err := found.GetLastMsgForSubject(t.Context(), "log."+hub+".event.device"); err != nil || string(last.Data) != "2" {
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
			if err != nil || (n < 3 && string(msg.Data) != fmt.Sprint(n)) || (n == 3 && msg.Header.Get("Status") != "204") {
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

// forbidden is something that a tap must not do: a request that changes or reveals what is not the feed or a hub's log.
type forbidden struct{ subject, body string }

// forbiddenRequests are hostile requests, each as the account TAP would reach it and as the shard's own account has it.
func forbiddenRequests(stream, hub string) []forbidden {
	var all []forbidden
	for _, api := range []string{streams.JetStreamAPI, streams.ShardAPI(0)} {
		for _, request := range []forbidden{
			{"STREAM.CREATE.MINE", `{"name":"MINE","subjects":["mine"]}`},
			{"STREAM.UPDATE." + stream, `{"name":"` + stream + `","subjects":["log.` + hub + `.>"],"max_msgs":1}`},
			{"STREAM.PURGE." + stream, ``},
			{"STREAM.DELETE." + stream, ``},
			{"STREAM.MSG.DELETE." + stream, `{"seq":1}`},
			{"STREAM.SNAPSHOT." + stream, `{"deliver_subject":"_INBOX.tap.x"}`},
			{"STREAM.RESTORE.MINE", `{}`},
			{"STREAM.LEADER.STEPDOWN." + stream, ``},
			{"CONSUMER.CREATE." + stream, `{"stream_name":"` + stream + `","config":{"deliver_subject":"feed.x","ack_policy":"none"}}`},
			{"CONSUMER.CREATE." + stream + ".mine", `{"stream_name":"` + stream + `","config":{"name":"mine","ack_policy":"explicit"}}`},
			{"CONSUMER.DURABLE.CREATE." + stream + ".mine", `{"stream_name":"` + stream + `","config":{"durable_name":"mine","ack_policy":"explicit"}}`},
			{"CONSUMER.MSG.NEXT." + stream + ".mine", ``},
			{"CONSUMER.NAMES." + stream, ``},
			{"ACCOUNT.PURGE.SHARD00", ``},
			{"INFO", ``},
			{"DIRECT.GET.$MQTT_sess", `{"seq":1}`},
			{"DIRECT.GET.$MQTT_msgs", `{"seq":1}`},
			{"DIRECT.GET.$MQTT_rmsgs.x", ``},
			{"STREAM.MSG.GET.$MQTT_sess", `{"seq":1}`},
			{"STREAM.INFO.$MQTT_rmsgs", ``},
		} {
			all = append(all, forbidden{api + "." + request.subject, request.body})
		}
	}
	return append(all,
		forbidden{streams.JetStreamAPI + ".DIRECT.GET." + stream, `{"seq":1}`},
		forbidden{streams.JetStreamAPI + ".DIRECT.GET.DIRECTORY", `{"seq":1}`},
		forbidden{streams.JetStreamAPI + ".STREAM.MSG.GET.DIRECTORY", `{"seq":1}`},
		forbidden{streams.JetStreamAPI + ".DIRECT.GET.KV_sign-in", `{"seq":1}`},
		forbidden{streams.JetStreamAPI + ".DIRECT.GET.KV_idempotency", `{"seq":1}`},
		forbidden{"log." + hub + ".event.device", `{"type":"forged"}`},
		forbidden{"feed." + hub + ".event.device", `{"type":"forged"}`},
		forbidden{"hub." + hub + ".request", `{}`},
		forbidden{"hub." + hub + ".ack", `{}`},
		forbidden{"directory.org.x", `{}`},
		forbidden{"$KV.sign-in.x", `{}`},
		forbidden{"$SYS.REQ.SERVER.PING", ``},
		forbidden{"$SYS.REQ.USER.INFO", ``},
		forbidden{"$SYS.REQ.ACCOUNT.PING.CONNZ", ``},
		forbidden{"_INBOX.other.x", `forged answer`},
		forbidden{"anything", ``},
	)
}

// TestTapCanDoNothingElse tries what a tap must not be able to do; each time the server itself must say that it refuses.
func TestTapCanDoNothingElse(t *testing.T) {
	t.Parallel()
	s := start(t, config(t, t.TempDir()))
	conns := connect(t, s)
	stream, hub := makeLog(t, conns, 0, 3)
	nc, reports := tapConn(t, s)
	refused := func(what string) {
		t.Helper()
		if err := nc.FlushTimeout(patient); err != nil {
			t.Fatal(err)
		}
		select {
		case err := <-reports:
			if !errors.Is(err, nats.ErrPermissionViolation) {
				t.Errorf("%s: %v", what, err)
			}
		case <-time.After(patient):
			t.Errorf("%s: not refused", what)
		}
	}
	for _, request := range forbiddenRequests(stream, hub) {
		if err := nc.PublishRequest(request.subject, nc.NewInbox(), []byte(request.body)); err != nil {
			t.Fatal(err)
		}
		refused("publish to " + request.subject)
	}
	for _, subject := range []string{">", "*", "_INBOX.>", "_INBOX.other.>", "hub.>", "log.>", "directory.>", "$KV.>", "$SYS.>", "$JS.>", "$MQTT.>", "_R_.>", "shard.>"} {
		if _, err := nc.SubscribeSync(subject); err != nil {
			t.Fatal(err)
		}
		refused("subscribe to " + subject)
	}

	js, err := jetstream.New(conns.Shards[0])
	if err != nil {
		t.Fatal(err)
	}
	found, err := js.Stream(t.Context(), stream)
	if err != nil {
		t.Fatal(err)
	}
	info := found.CachedInfo()
	if info.State.Msgs != 3 || info.State.Consumers != 0 || info.Config.MaxMsgs > 0 {
		t.Errorf("the log is another afterwards: %+v, %+v", info.State, info.Config)
	}
	if _, err := js.Stream(t.Context(), "MINE"); !errors.Is(err, jetstream.ErrStreamNotFound) {
		t.Errorf("a stream was made: %v", err)
	}
}

// TestTapUserIsMadeLater: an installation from before there were taps gets a user for them, and keeps the others.
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
	if err != nil || kept.Users[streams.AccountCloud] != before.Users[streams.AccountCloud] || kept.Users[streams.AccountTap].Password == "" {
		t.Fatalf("%v; users %d", err, len(kept.Users))
	}
	tapConn(t, second)
}

// TestLayoutOfAnInstallation: the accounts are told apart, and only the shards give something away, to TAP alone.
func TestLayoutOfAnInstallation(t *testing.T) {
	t.Parallel()
	s := start(t, config(t, t.TempDir()))
	layout, err := broker.NewLayout(s.Credentials())
	if err != nil {
		t.Fatal(err)
	}
	for _, account := range layout.Accounts {
		shard := strings.HasPrefix(string(account.Name), "SHARD")
		if (len(account.Exports) > 0) != shard || (len(account.Imports) > 0) != (account.Name == streams.AccountTap) || len(account.Users) != 1 {
			t.Errorf("account %s: %d exports, %d imports, %d users", account.Name, len(account.Exports), len(account.Imports), len(account.Users))
		}
		if (account.Users[0].Permissions != nil) != (account.Name == streams.AccountTap) {
			t.Errorf("account %s: permissions %v", account.Name, account.Users[0].Permissions)
		}
		for _, export := range account.Exports {
			if export.To != streams.AccountTap {
				t.Errorf("account %s exports %s to %s", account.Name, export.Subject, export.To)
			}
		}
		if strings.Contains(layout.Text(), s.Credentials().Users[account.Name].Password) {
			t.Errorf("the configuration shows the password of %s", account.Name)
		}
	}
	// Credentials from before there were taps have an account TAP, and nobody in it that the server knows by itself.
	old := s.Credentials()
	delete(old.Users, streams.AccountTap)
	layout, err = broker.NewLayout(old)
	if err != nil || len(layout.Accounts[2].Users) != 0 || slices.Contains(layout.CalloutUsers, "tap") {
		t.Errorf("%+v, %v", layout.Accounts[2].Users, err)
	}
}
