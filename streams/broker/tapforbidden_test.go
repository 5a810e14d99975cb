package broker_test

import (
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"hubcloud/streams"
	"hubcloud/streams/jsapi"
)

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
		if err := nc.FlushTimeout(rejectedTimeout); err != nil {
			t.Fatal(err)
		}
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
		if err := nc.PublishRequest(r.subject, nc.NewInbox(), []byte(r.body)); err != nil {
			t.Fatal(err)
		}
		rejected("publish to " + r.subject)
	}
	for _, subject := range forbiddenSubjects() {
		if _, err := nc.SubscribeSync(subject); err != nil {
			t.Fatal(err)
		}
		rejected("subscribe to " + subject)
	}
}
