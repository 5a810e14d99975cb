package streamstest

import (
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"hubcloud/streams"
	"hubcloud/streams/jsapi"
)

// forbidden is something that a tap must not do: a request that changes or reveals what is no feed
// and no hub's log.
type forbidden struct{ subject, body string }

// forbiddenRequests are hostile requests, each as a tap would reach it and as the shard's own
// account has it.
func forbiddenRequests(shard int, stream, hub string) []forbidden {
	var all []forbidden
	for _, api := range []string{jsapi.Prefix, streams.ShardAPI(shard)} {
		for _, request := range []forbidden{
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
			all = append(all, forbidden{api + "." + request.subject, request.body})
		}
	}
	return append(all,
		forbidden{jsapi.Prefix + ".DIRECT.GET." + stream, `{"seq":1}`},
		forbidden{jsapi.Prefix + ".DIRECT.GET.DIRECTORY", `{"seq":1}`},
		forbidden{jsapi.Prefix + ".STREAM.MSG.GET.DIRECTORY", `{"seq":1}`},
		forbidden{jsapi.Prefix + ".DIRECT.GET.KV_sign-in", `{"seq":1}`},
		forbidden{jsapi.Prefix + ".DIRECT.GET.KV_idempotency", `{"seq":1}`},
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

// unheard are subjects that a tap must not hear.
func unheard() []string {
	return []string{
		">", "*", "_INBOX.>", "_INBOX.other.>", "hub.>", "log.>", "directory.>", "$KV.>", "$SYS.>",
		"$JS.>", "$MQTT.>", "_R_.>", "shard.>",
	}
}

const rejectedTimeout = time.Minute

// TryForbidden tries everything that a tap must not be able to do; the server itself must say each
// time that it refuses, which comes to reports. The stream is the log of a hub in that shard.
func TryForbidden(
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
	for _, request := range forbiddenRequests(shard, stream, hub) {
		if err := nc.PublishRequest(request.subject, nc.NewInbox(), []byte(request.body)); err != nil {
			t.Fatal(err)
		}
		rejected("publish to " + request.subject)
	}
	for _, subject := range unheard() {
		if _, err := nc.SubscribeSync(subject); err != nil {
			t.Fatal(err)
		}
		rejected("subscribe to " + subject)
	}
}
