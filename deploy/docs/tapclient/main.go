// Command tapclient follows the event log of one hub with only a NATS client. It prints the stored
// events, then new ones, each once and in order. It is the example in ../tap.md.
//
//	go run ./deploy/docs/tapclient tap.json hub-7k2m-q4xd-93ta
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"
	"os/signal"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: tapclient FILE-OF-tap-credentials HUB_ID")
		os.Exit(2)
	}
	if err := follow(ctx, os.Args[1], os.Args[2], os.Stdout); err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, "tapclient:", err)
		os.Exit(1)
	}
}

// credentials is the content of the file that `hubcloud tap credentials` writes.
type credentials struct {
	URL         string `json:"url"`
	User        string `json:"user"`
	Password    string `json:"password"`
	InboxPrefix string `json:"inbox_prefix"`
	Shards      uint32 `json:"shards"`
}

// connect connects with the credentials in a file. The connection reconnects by itself.
func connect(path string, opts ...nats.Option) (*nats.Conn, credentials, error) {
	var c credentials
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, &c)
	}
	if err != nil {
		return nil, c, err
	}
	opts = append(
		opts, nats.UserInfo(c.User, c.Password), nats.CustomInboxPrefix(c.InboxPrefix),
		nats.MaxReconnects(-1), nats.IgnoreAuthErrorAbort(),
	)
	nc, err := nats.Connect(c.URL, opts...)
	return nc, c, err
}

// api returns the JetStream API prefix of a hub's shard. The shard is FNV-1a, 32 bits, of the hub's
// id, modulo the number of shards.
func api(hub string, shards uint32) string {
	h := fnv.New32a()
	io.WriteString(h, hub) // never fails
	return fmt.Sprintf("shard.%02d", h.Sum32()%shards)
}

// follow writes a hub's events to out, one a line, until ctx ends. opts are for tests.
func follow(ctx context.Context, path, hub string, out io.Writer, opts ...nats.Option) error {
	nc, c, err := connect(path, opts...)
	if err != nil {
		return err
	}
	defer nc.Close()
	// Subscribing before the first read makes sure that no event is missed. A message of the feed
	// only means that the log has a new event.
	news := make(chan *nats.Msg, 1024)
	if _, err := nc.ChanSubscribe("feed."+hub+".>", news); err != nil {
		return err
	}
	for last := uint64(0); ; {
		messages, err := read(ctx, nc, api(hub, c.Shards)+".DIRECT.GET.HUB_"+hub, last+1)
		if err != nil && ctx.Err() == nil {
			// The broker is down. Once it is back, the log has the missed events.
			fmt.Fprintln(os.Stderr, "retrying:", err)
			pause(ctx, nil, time.Second)
			continue
		}
		for _, m := range messages {
			seq, err := strconv.ParseUint(m.Header.Get("Nats-Sequence"), 10, 64)
			if err != nil {
				return err
			}
			if last > 0 && seq > last+1 {
				fmt.Fprintf(os.Stderr, "the log no longer has %d to %d\n", last+1, seq-1)
			}
			last = seq
			if m.Header.Get("Nats-Subject") != "log."+hub+".command" {
				fmt.Fprintf(out, "%s\n", m.Data)
			}
		}
		if len(messages) > 0 {
			continue
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		pause(ctx, news, 30*time.Second) // limited: the feed may have lost a message
	}
}

// pause waits for a message of news, but not longer than limit.
func pause(ctx context.Context, news <-chan *nats.Msg, limit time.Duration) {
	select {
	case <-ctx.Done():
	case <-news:
	case <-time.After(limit):
	}
}

// read returns up to 500 messages of a log from a sequence on. The broker sends each message as an
// answer of its own. A last answer without a body has a Status: 204 after messages, 404 if there
// are none, 503 if the log does not exist yet.
func read(
	ctx context.Context, nc *nats.Conn, subject string, from uint64,
) (messages []*nats.Msg, err error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	inbox := nc.NewInbox()
	answers, err := nc.SubscribeSync(inbox)
	if err != nil {
		return nil, err
	}
	defer answers.Unsubscribe()
	if err := nc.PublishRequest(
		subject, inbox, fmt.Appendf(nil, `{"seq":%d,"batch":500}`, from),
	); err != nil {
		return nil, err
	}
	for {
		m, err := answers.NextMsgWithContext(ctx)
		if errors.Is(err, nats.ErrNoResponders) {
			return messages, nil
		}
		if err != nil {
			return nil, err
		}
		switch m.Header.Get("Status") {
		case "":
			messages = append(messages, m)
		case "204", "404", "503":
			return messages, nil
		default:
			return nil, fmt.Errorf(
				"%s: %s %s", subject, m.Header.Get("Status"), m.Header.Get("Description"),
			)
		}
	}
}
