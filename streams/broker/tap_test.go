package broker_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"hubcloud/streams"
	"hubcloud/streams/broker"
	"hubcloud/streams/jsapi"
	"hubcloud/streams/streamstest"
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
	streamstest.Must(t, err)
	t.Cleanup(nc.Close)
	return nc, reports
}

// createLog creates a stream like a hub's log in a shard, with n messages.
func createLog(t testing.TB, conns *streams.Conns, shard, n int) (stream, hub string) {
	t.Helper()
	hub = fmt.Sprintf("hub-tapt-test-%04d", shard)
	js, err := jetstream.New(conns.Shards[shard])
	streamstest.Must(t, err)
	stream = "HUB_" + hub
	_, err = js.CreateStream(t.Context(), jetstream.StreamConfig{
		Name: stream, Subjects: []string{"log." + hub + ".>"}, AllowDirect: true,
		RePublish: &jetstream.RePublish{
			Source: "log." + hub + ".>", Destination: "feed." + hub + ".>",
		},
	})
	streamstest.Must(t, err)
	for i := range n {
		_, err := js.Publish(t.Context(), "log."+hub+".event.device", fmt.Appendf(nil, "%d", i))
		streamstest.Must(t, err)
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
	streamstest.Must(t, err)
	streamstest.Must(t, nc.FlushTimeout(testTimeout))
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
		// A batch has several answers to one request.
		msgs, err := jsapi.New(nc).WithPrefix(streams.ShardAPI(shard)).GetBatch(
			t.Context(), jsapi.BatchRequest{Stream: stream, Messages: 10},
		)
		if err != nil || len(msgs) != 3 || string(msgs[2].Data) != "2" {
			t.Fatalf("batch of shard %d: got %v, error %v, want messages 0 to 2", shard, msgs, err)
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
	streamstest.Must(t, err)
	found, err := js.Stream(t.Context(), stream)
	streamstest.Must(t, err)
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
	streamstest.Must(t, err)
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

// request is a message that a test publishes.
type request struct{ subject, body string }

// forbiddenRequests returns requests that a tap must not make: they would change something, or read
// anything but feeds and hub logs. Each request to the JetStream API is listed under the prefix for
// taps and under the prefix of the shard's own account.
func forbiddenRequests(shard int, stream, hub string) []request {
	var all []request
	for _, api := range []string{jsapi.Prefix, streams.ShardAPI(shard)} {
		for _, r := range []request{
			{"STREAM.CREATE.MINE", `{"name":"MINE","subjects":["mine"]}`},
			{
				"STREAM.UPDATE." + stream,
				`{"name":"` + stream + `","subjects":["log.` + hub + `.>"],"max_msgs":1}`,
			},
			{"STREAM.PURGE." + stream, ``},
			{"STREAM.DELETE." + stream, ``},
			{"STREAM.MSG.DELETE." + stream, `{"seq":1}`},
			{"STREAM.SNAPSHOT." + stream, `{"deliver_subject":"_INBOX.x"}`},
			{"STREAM.RESTORE.MINE", `{}`},
			{"STREAM.LEADER.STEPDOWN." + stream, ``},
			{
				"CONSUMER.CREATE." + stream,
				`{"stream_name":"` + stream + `","config":{"deliver_subject":"feed.x","ack_policy":"none"}}`,
			},
			{
				"CONSUMER.CREATE." + stream + ".mine",
				`{"stream_name":"` + stream + `","config":{"name":"mine","ack_policy":"explicit"}}`,
			},
			{
				"CONSUMER.DURABLE.CREATE." + stream + ".mine",
				`{"stream_name":"` + stream + `","config":{"durable_name":"mine","ack_policy":"explicit"}}`,
			},
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
			all = append(all, request{api + "." + r.subject, r.body})
		}
	}
	return append(all,
		request{jsapi.Prefix + ".DIRECT.GET." + stream, `{"seq":1}`},
		request{jsapi.Prefix + ".DIRECT.GET.DIRECTORY", `{"seq":1}`},
		request{jsapi.Prefix + ".STREAM.MSG.GET.DIRECTORY", `{"seq":1}`},
		request{jsapi.Prefix + ".DIRECT.GET.KV_sign-in", `{"seq":1}`},
		request{jsapi.Prefix + ".DIRECT.GET.KV_idempotency", `{"seq":1}`},
		request{"log." + hub + ".event.device", `{"type":"forged"}`},
		request{"feed." + hub + ".event.device", `{"type":"forged"}`},
		request{"hub." + hub + ".request", `{}`},
		request{"hub." + hub + ".ack", `{}`},
		request{"directory.org.x", `{}`},
		request{"$KV.sign-in.x", `{}`},
		request{"$SYS.REQ.SERVER.PING", ``},
		request{"$SYS.REQ.USER.INFO", ``},
		request{"$SYS.REQ.ACCOUNT.PING.CONNZ", ``},
		request{"_INBOX.other.x", `forged answer`},
		request{"anything", ``},
	)
}

// forbiddenSubjects returns subjects that a tap must not subscribe to.
func forbiddenSubjects() []string {
	return []string{
		">", "*", "_INBOX.>", "_INBOX.other.>", "hub.>", "log.>", "directory.>", "$KV.>", "$SYS.>",
		"$JS.>", "$MQTT.>", "_R_.>", "shard.>",
	}
}

const rejectedTimeout = time.Minute

// tryForbidden tries everything that the tap connected by nc must not be able to do. The server
// must reject each attempt with a permissions violation, which the connection's error handler must
// send to reports. stream is the stream of the hub's log in that shard.
func tryForbidden(
	t testing.TB, nc *nats.Conn, reports <-chan error, shard int, stream, hub string,
) {
	t.Helper()
	rejected := func(what string) {
		t.Helper()
		streamstest.Must(t, nc.FlushTimeout(rejectedTimeout))
		select {
		case err := <-reports:
			if !errors.Is(err, nats.ErrPermissionViolation) {
				t.Errorf("%s: %v", what, err)
			}
		case <-time.After(rejectedTimeout):
			t.Errorf("%s: not rejected", what)
		}
	}
	for _, r := range forbiddenRequests(shard, stream, hub) {
		streamstest.Must(t, nc.PublishRequest(r.subject, nc.NewInbox(), []byte(r.body)))
		rejected("publish to " + r.subject)
	}
	for _, subject := range forbiddenSubjects() {
		if _, err := nc.SubscribeSync(subject); err != nil {
			t.Fatal(err)
		}
		rejected("subscribe to " + subject)
	}
}
