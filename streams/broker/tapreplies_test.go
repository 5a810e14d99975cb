package broker_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"hubcloud/streams"
	"hubcloud/streams/streamstest"
)

// witness is a connection of a tap that would receive the messages that another tap forges.
type witness struct {
	*nats.Conn
	// Inbox is the prefix of its inboxes.
	Inbox string
	// Other reports whether the witness has other credentials than the attacker. If so, its inbox
	// must stay empty.
	Other bool
}

// allowedRequests returns requests that a tap may make. The server answers each of them, with one
// message or several.
func allowedRequests(shard int, stream, hub string) []request {
	api, subject := streams.ShardAPI(shard)+".", "log."+hub+".event.device"
	return []request{
		{api + "STREAM.NAMES", ``},
		{api + "STREAM.LIST", ``},
		{api + "STREAM.INFO." + stream, ``},
		{api + "STREAM.INFO.NONE", ``},
		{api + "STREAM.MSG.GET." + stream, `{"seq":1}`},
		{api + "STREAM.MSG.GET." + stream, `not JSON`},
		{api + "DIRECT.GET." + stream, `{"seq":1}`},
		{api + "DIRECT.GET." + stream, `{"seq":1,"batch":10}`},
		{api + "DIRECT.GET." + stream, `{"last_by_subj":"` + subject + `"}`},
		{api + "DIRECT.GET." + stream, `{"multi_last":["` + subject + `"],"batch":10}`},
		{api + "DIRECT.GET." + stream, `{"seq":1000000}`},
		{api + "DIRECT.GET." + stream + "." + subject, ``},
	}
}

// tryReplies makes every request that a tap may make, with reply subjects at which the answer would
// look like a message of another sender: on the feeds, in the inboxes of the witnesses, as a
// request, and as a message of the server. Then it stores an event as owner. The witnesses must
// receive that event and nothing else. The server may reject a reply subject; the attacker's error
// handler must send the error to reports.
func tryReplies(
	t testing.TB, attacker *nats.Conn, reports <-chan error, shard int, stream, hub string,
	owner *nats.Conn, witnesses ...witness,
) {
	t.Helper()
	subject := "log." + hub + ".event.device"
	replies := []string{
		"feed.x",
		"feed." + hub + ".event.device",
		"feed." + hub + ".event.link",
		streams.ShardAPI(shard) + ".DIRECT.GET." + stream,
	}
	type listener struct {
		what  string
		sub   *nats.Subscription
		feeds bool
	}
	var listeners []listener
	for n, w := range witnesses {
		subjects := []string{streams.AnyFeed}
		if w.Other {
			subjects = append(subjects, w.Inbox+".>")
			replies = append(replies, w.Inbox+".x", w.Inbox+".x.y", w.NewInbox())
		}
		for _, subject := range subjects {
			sub, err := w.SubscribeSync(subject)
			streamstest.Must(t, err)
			listeners = append(
				listeners,
				listener{
					fmt.Sprintf("witness %d on %s", n, subject),
					sub,
					subject == streams.AnyFeed,
				},
			)
		}
		streamstest.Must(t, w.FlushTimeout(rejectedTimeout))
	}
	own, err := attacker.SubscribeSync(streams.AnyFeed)
	streamstest.Must(t, err)
	listeners = append(listeners, listener{"the attacker on " + streams.AnyFeed, own, true})

	for _, r := range allowedRequests(shard, stream, hub) {
		for _, reply := range replies {
			streamstest.Must(t, attacker.PublishRequest(r.subject, reply, []byte(r.body)))
			// With this header the broker would send a trace of the message there, if it allowed
			// it.
			traced := &nats.Msg{
				Subject: r.subject,
				Reply:   reply,
				Data:    []byte(r.body),
				Header:  nats.Header{"Nats-Trace-Dest": {reply}},
			}
			streamstest.Must(t, attacker.PublishMsg(traced))
		}
		// The answer to this request comes after the answers to the others.
		if _, err := attacker.Request(r.subject, []byte(r.body), rejectedTimeout); err != nil {
			t.Fatalf("%s: %v", r.subject, err)
		}
	}
	for _, reserved := range []string{"_R_.x", "_GR_.x", "$JS.ACK." + stream + ".x.1.1.1.1.1"} {
		names := streams.ShardAPI(shard) + ".STREAM.NAMES"
		streamstest.Must(t, attacker.PublishRequest(names, reserved, nil))
	}
	streamstest.Must(t, attacker.FlushTimeout(rejectedTimeout))
	for len(reports) > 0 {
		if err := <-reports; !errors.Is(err, nats.ErrPermissionViolation) &&
			!strings.Contains(err.Error(), "Permissions Violation") {
			t.Errorf("the server reported %v, want a permissions violation", err)
		}
	}

	const event = "the event that was stored"
	publish := func() {
		t.Helper()
		if _, err := owner.Request(subject, []byte(event), rejectedTimeout); err != nil {
			t.Fatal(err)
		}
	}
	stored := func(msg *nats.Msg) bool {
		return string(msg.Data) == event && msg.Subject == "feed."+hub+".event.device"
	}
	publish()
	for _, l := range listeners {
		deadline := time.Now().Add(rejectedTimeout)
		for received := !l.feeds; !received; {
			msg, err := l.sub.NextMsg(5 * time.Second)
			switch {
			case err == nil && !stored(msg):
				t.Fatalf("%s received a forged %q: %.200q", l.what, msg.Subject, msg.Data)
			case err == nil:
				received = true
			case time.Now().After(deadline):
				t.Fatalf("%s did not receive the event: %v", l.what, err)
			default:
				// A server of a cluster learns of a new subscription on another one only after a
				// while.
				publish()
			}
		}
		for {
			msg, err := l.sub.NextMsg(100 * time.Millisecond)
			if err != nil {
				break
			}
			if !l.feeds || !stored(msg) {
				t.Fatalf("%s received a forged %q: %.200q", l.what, msg.Subject, msg.Data)
			}
		}
		streamstest.Must(t, l.sub.Unsubscribe())
	}
}
