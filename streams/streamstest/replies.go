package streamstest

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"hubcloud/streams"
)

// Witness is a connection of a tap that hears what another one may have forged.
type Witness struct {
	*nats.Conn
	// Inbox is its inbox prefix.
	Inbox string
	// Other reports that the witness has other credentials than the attacker: then nothing may come to
	// its inbox.
	Other bool
}

// readRequests are requests that a tap may make, with bodies that are answered, by one message or
// by many.
func readRequests(shard int, stream, hub string) []forbidden {
	api, subject := streams.ShardAPI(shard)+".", "log."+hub+".event.device"
	return []forbidden{
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

// TryReplies has an attacker ask for answers, by every request that it may make, where they would
// be taken for somebody else's messages: on the feeds, in the inboxes of the witnesses, as
// requests, as the server's own messages. Then an event is stored, and the witnesses must hear it
// and nothing else. The server may refuse the reply, which comes to reports.
func TryReplies(
	t testing.TB, attacker *nats.Conn, reports <-chan error, shard int, stream, hub string,
	owner *nats.Conn, witnesses ...Witness,
) {
	t.Helper()
	subject := "log." + hub + ".event.device"
	replies := []string{
		"feed.x",
		"feed." + hub + ".event.device",
		"feed." + hub + ".event.link",
		streams.ShardAPI(shard) + ".DIRECT.GET." + stream,
	}
	type ear struct {
		what  string
		sub   *nats.Subscription
		feeds bool
	}
	var ears []ear
	for n, w := range witnesses {
		hears := []string{streams.AnyFeed}
		if w.Other {
			hears = append(hears, w.Inbox+".>")
			replies = append(replies, w.Inbox+".x", w.Inbox+".x.y", w.NewInbox())
		}
		for _, subject := range hears {
			sub, err := w.SubscribeSync(subject)
			if err != nil {
				t.Fatal(err)
			}
			ears = append(
				ears,
				ear{fmt.Sprintf("witness %d on %s", n, subject), sub, subject == streams.AnyFeed},
			)
		}
		if err := w.FlushTimeout(rejectedTimeout); err != nil {
			t.Fatal(err)
		}
	}
	own, err := attacker.SubscribeSync(streams.AnyFeed)
	if err != nil {
		t.Fatal(err)
	}
	ears = append(ears, ear{"the attacker on " + streams.AnyFeed, own, true})

	for _, request := range readRequests(shard, stream, hub) {
		for _, reply := range replies {
			if err := attacker.PublishRequest(request.subject, reply, []byte(request.body)); err != nil {
				t.Fatal(err)
			}
			// Where the broker would report on the way of a message, if it took the header.
			traced := &nats.Msg{
				Subject: request.subject,
				Reply:   reply,
				Data:    []byte(request.body),
				Header:  nats.Header{"Nats-Trace-Dest": {reply}},
			}
			if err := attacker.PublishMsg(traced); err != nil {
				t.Fatal(err)
			}
		}
		// Its own answer comes after those.
		if _, err := attacker.Request(request.subject, []byte(request.body), rejectedTimeout); err != nil {
			t.Fatalf("%s: %v", request.subject, err)
		}
	}
	for _, reserved := range []string{"_R_.x", "_GR_.x", "$JS.ACK." + stream + ".x.1.1.1.1.1"} {
		if err := attacker.PublishRequest(streams.ShardAPI(shard)+".STREAM.NAMES", reserved, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := attacker.FlushTimeout(rejectedTimeout); err != nil {
		t.Fatal(err)
	}
	for len(reports) > 0 {
		if err := <-reports; !errors.Is(err, nats.ErrPermissionViolation) &&
			!strings.Contains(err.Error(), "Permissions Violation") {
			t.Errorf("the server reports %v", err)
		}
	}

	const event = "the event that was stored"
	if _, err := owner.Request(subject, []byte(event), rejectedTimeout); err != nil {
		t.Fatal(err)
	}
	for _, e := range ears {
		if e.feeds {
			msg, err := e.sub.NextMsg(rejectedTimeout)
			if err != nil {
				t.Fatalf("%s does not hear the event: %v", e.what, err)
			}
			if string(msg.Data) != event || msg.Subject != "feed."+hub+".event.device" {
				t.Fatalf("%s hears a forged %q: %.200q", e.what, msg.Subject, msg.Data)
			}
		}
		if msg, err := e.sub.NextMsg(100 * time.Millisecond); err == nil {
			t.Fatalf("%s hears a forged %q: %.200q", e.what, msg.Subject, msg.Data)
		}
		if err := e.sub.Unsubscribe(); err != nil {
			t.Fatal(err)
		}
	}
}
