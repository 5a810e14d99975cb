package feed

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/jsapi"
)

// Source reads hub logs from outside the service, through a tap's account of the broker. It reads
// each message from the stream, without tail, ring and cache.
//
// All methods may be called at the same time; up to 16 reads are under way at once.
type Source struct {
	nc     *nats.Conn
	shards int
	reads  *jsapi.BatchPool
}

// NewSource returns a Source over a tap's connection to an installation with that many shards.
func NewSource(nc *nats.Conn, shards int) *Source {
	return &Source{nc: nc, shards: shards, reads: jsapi.New(nc).NewBatchPool(maxGets, maxGet)}
}

// Close unsubscribes. The Source must not be used afterwards.
func (s *Source) Close() { s.reads.Close() }

// Message is one message of a hub's stream: an event, a record of a command, or one that is hidden
// from readers.
type Message struct {
	Seq uint64
	// Stored is when it was stored.
	Stored time.Time
	// Hidden reports that only the sequence and the time matter. Neither Event nor Command is set.
	Hidden bool
	// Event is nil for the record of a command, which is then Command.
	Event   *Event
	Command []byte
}

// Event is an event of a hub's log.
type Event struct {
	// EpochID is the id of the log's epoch.
	EpochID domain.EpochID
	// OrgID is the organization that had the hub; it may be empty.
	OrgID string
	// Type is the event's type, Cursor its cursor, Envelope the API's envelope as one JSON line.
	Type, Cursor string
	Envelope     []byte
}

// Complete has a shard's logs completed: reads find what was stored before the call. Nobody answers
// while no process writes the logs (nats.ErrNoResponders).
func (s *Source) Complete(ctx context.Context, shard int) error {
	answer, err := s.nc.RequestWithContext(ctx, streams.CompleteViewsOf(shard), nil)
	if err == nil && len(answer.Data) > 0 {
		err = errors.New(string(answer.Data))
	}
	if err != nil {
		return fmt.Errorf("complete the logs of shard %d: %w", shard, err)
	}
	return nil
}

// MaxRead is the most messages that one read returns.
const MaxRead = maxGet

// Read returns up to n messages from the sequence from on: at most MaxRead, and about a megabyte.
// Expired messages are left out. An empty answer does not prove that there is no message: see
// State.
func (s *Source) Read(
	ctx context.Context, hub domain.HubID, from uint64, n int,
) ([]Message, error) {
	return s.get(ctx, hub, jsapi.BatchRequest{From: from, Messages: n})
}

// clockSkew is how far the clocks of the broker and of the writers of the logs may be apart.
const clockSkew = 10 * time.Second

// ReadSince is Read from the first message stored at since or later.
func (s *Source) ReadSince(
	ctx context.Context, hub domain.HubID, since time.Time, n int,
) ([]Message, error) {
	// The broker compares its own times, at which it wrote the stream. They are later than the
	// times of the messages, by much if the stream was written again.
	request := jsapi.BatchRequest{Since: since.Add(-clockSkew), Messages: n}
	for {
		messages, err := s.get(ctx, hub, request)
		if err != nil || len(messages) == 0 {
			return nil, err
		}
		request.Since, request.From = time.Time{}, messages[len(messages)-1].Seq+1
		for i := range messages {
			if !messages[i].Stored.Before(since) {
				return messages[i:], nil
			}
		}
	}
}

func (s *Source) get(
	ctx context.Context, hub domain.HubID, r jsapi.BatchRequest,
) ([]Message, error) {
	r.Prefix, r.Stream = streams.ShardAPI(streams.ShardOf(hub, s.shards)), streams.HubStream(hub)
	r.Messages, r.Bytes = min(r.Messages, MaxRead), maxGetBytes
	found, err := getStored(ctx, s.reads, r)
	if err != nil {
		return nil, fmt.Errorf("read the log of %s: %w", hub, err)
	}
	messages := make([]Message, 0, len(found))
	for _, m := range found {
		message, err := m.message()
		if err != nil {
			return nil, fmt.Errorf("read the log of %s: %w", hub, err)
		}
		messages = append(messages, message)
	}
	return messages, nil
}

// message returns a stored message in its exported form.
func (m stored) message() (Message, error) {
	message := Message{Seq: m.seq, Stored: m.at, Hidden: m.state}
	if m.state {
		return message, nil
	}
	if !m.event {
		message.Command = m.data
		return message, nil
	}
	encoded, err := m.encode()
	if err != nil {
		return message, err
	}
	typ, err := payloadType(m.data)
	if err != nil {
		return message, err
	}
	message.Event = &Event{
		EpochID: m.epoch, OrgID: m.org, Type: typ, Cursor: encoded.Cursor,
		Envelope: encoded.Envelope,
	}
	return message, nil
}

// ParseFeed reads a message of the feed, which the writer of the hub's journal publishes once the
// message is durable.
func ParseFeed(msg *nats.Msg) (hub domain.HubID, m Message, err error) {
	hub = streams.ParseFeedSubject(msg.Subject)
	stored, err := parsePublished(msg)
	if err != nil {
		return hub, m, fmt.Errorf("feed of %s: %w", hub, err)
	}
	m, err = stored.message()
	return hub, m, err
}

// api returns the JetStream API of a shard.
func (s *Source) api(shard int) jsapi.API {
	return jsapi.New(s.nc).WithPrefix(streams.ShardAPI(shard))
}
