package hublog

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"hubcloud/domain"
	"hubcloud/streams"
)

// Source reads hub logs through the broker's account of a tap, each message once: there is no tail,
// no ring and no cache. It is for those who read all logs from outside the service. A read waits
// for a batch that is being stored, so nothing is read that a crash could take back.
//
// It is safe for concurrent use; up to 16 reads are under way at once.
type Source struct {
	lanes  lanes
	shards int
}

// NewSource makes a Source over a tap's connection to an installation with that many shards.
func NewSource(nc *nats.Conn, shards int) *Source {
	s := &Source{shards: shards}
	s.lanes.init(nc)
	return s
}

// Close takes the subscriptions back. Nothing may be read any more.
func (s *Source) Close() { s.lanes.close() }

// Message is one message of a hub's stream: an event, or a record of a command.
type Message struct {
	Seq uint64
	// Stored is when it was stored.
	Stored time.Time
	// Event is nil for a record of a command, whose text is Command.
	Event   *Event
	Command []byte
}

// Event is an event as a Source reads it.
type Event struct {
	// EpochID is the id of the log's epoch.
	EpochID domain.EpochID
	// OrgID is the organization that has the hub; empty for events that were stored before that was
	// kept with them.
	OrgID string
	// Type is the event's type, Cursor its cursor, Envelope the contract's envelope as one JSON
	// line.
	Type, Cursor string
	Envelope     []byte
}

// MaxRead is the most messages that one read gives.
const MaxRead = maxGet

// Read gives up to n messages, at most MaxRead and about a megabyte, from the sequence from on.
// What has expired is left out without a word, and no message is no proof that there is none:
// Bounds tells.
func (s *Source) Read(
	ctx context.Context, hub domain.HubID, from uint64, n int,
) ([]Message, error) {
	n = min(n, MaxRead)
	return s.get(ctx, hub, rangeRequest(from, n, maxGetBytes), n)
}

// ReadSince is Read from the first message on that was stored at since or later.
func (s *Source) ReadSince(
	ctx context.Context, hub domain.HubID, since time.Time, n int,
) ([]Message, error) {
	n = min(n, MaxRead)
	request, err := json.Marshal(struct {
		From  time.Time `json:"start_time"`
		Batch int       `json:"batch"`
		Bytes int       `json:"max_bytes"`
	}{since.UTC(), n, maxGetBytes})
	if err != nil {
		return nil, err
	}
	return s.get(ctx, hub, request, n)
}

func (s *Source) get(
	ctx context.Context, hub domain.HubID, request []byte, n int,
) ([]Message, error) {
	found, err := s.lanes.get(ctx, s.api(hub)+".DIRECT.GET."+streams.HubStream(hub), request, n)
	if err != nil {
		return nil, fmt.Errorf("read the log of %s: %w", hub, err)
	}
	messages := make([]Message, 0, len(found))
	for _, m := range found {
		message, err := m.whole()
		if err != nil {
			return nil, fmt.Errorf("read the log of %s: %w", hub, err)
		}
		messages = append(messages, message)
	}
	return messages, nil
}

// whole gives what a stored message is to those outside.
func (m stored) whole() (Message, error) {
	message := Message{Seq: m.seq, Stored: m.at}
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

// Fed reads a message of the feed. It is certain when it cannot be taken back any more: the broker
// announces what came in a batch before the batch is on disk, and everything else after it is.
func Fed(msg *nats.Msg) (hub domain.HubID, m Message, certain bool, err error) {
	hub = hubOfFeed(msg.Subject)
	stored, err := parseStored(msg)
	if err != nil {
		return hub, m, false, fmt.Errorf("feed of %s: %w", hub, err)
	}
	m, err = stored.whole()
	return hub, m, stored.batchSeq == 0, err
}

func (s *Source) api(hub domain.HubID) string {
	return streams.ShardAPI(streams.ShardOf(hub, s.shards))
}
