package hublog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"hubcloud/domain"
	"hubcloud/streams"
)

// Codes of the broker's API.
const (
	codeNoMessage = 10037
	codeNoStream  = 10059
)

// Mark is what the last event of one of the log's two event subjects says.
type LastEvent struct {
	Seq uint64
	// Time is when it was stored.
	Time time.Time
	// Link, EpochID, OwnLog, Through and Connection are as they were appended.
	Link       bool
	EpochID    domain.EpochID
	OwnLog     string
	Through    uint64
	Connection string
	// Type is the event's type.
	Type string
}

// LastEvents gives the last event of the hub and the last of the cloud, those that there are, as
// the stream's leader has them: it shows everything that was stored before the call. A log without
// events, or without a stream, has none.
//
// A leader that is deposed and cut off may answer from an old state for some seconds. That is
// harmless here: whoever appends does it on condition that the log still ends so, and only the true
// leader stores anything.
func (l *Logs) LastEvents(ctx context.Context, hub domain.HubID) ([]LastEvent, error) {
	var marks []LastEvent
	for _, subject := range []string{streams.DeviceSubject(hub), streams.LinkSubject(hub)} {
		mark, ok, err := l.lastOf(ctx, hub, subject)
		if err != nil {
			return nil, fmt.Errorf("hub log of %s: last of %s: %w", hub, subject, err)
		}
		if ok {
			mark.Link = subject == streams.LinkSubject(hub)
			marks = append(marks, mark)
		}
	}
	return marks, nil
}

func (l *Logs) lastOf(
	ctx context.Context, hub domain.HubID, subject string,
) (mark LastEvent, ok bool, err error) {
	request, err := json.Marshal(map[string]string{"last_by_subj": subject})
	if err != nil {
		return mark, false, err
	}
	var answer struct {
		Message struct {
			Seq     uint64    `json:"seq"`
			Time    time.Time `json:"time"`
			Headers []byte    `json:"hdrs"`
			Data    []byte    `json:"data"`
		} `json:"message"`
		Error *streams.BrokerError `json:"error"`
	}
	if err := l.ask(ctx, hub, "$JS.API.STREAM.MSG.GET.", request, &answer); err != nil {
		return mark, false, err
	}
	if e := answer.Error; e != nil {
		if e.Code == codeNoMessage || e.Code == codeNoStream {
			return mark, false, nil
		}
		return mark, false, e
	}
	header, err := nats.DecodeHeadersMsg(answer.Message.Headers)
	if err != nil {
		return mark, false, fmt.Errorf("headers of sequence %d: %w", answer.Message.Seq, err)
	}
	mark = LastEvent{
		Seq:        answer.Message.Seq,
		Time:       answer.Message.Time,
		OwnLog:     header.Get(headerOwnLog),
		Connection: header.Get(headerConnection),
	}
	if id, err := domain.ParseEpochID(header.Get(headerEpoch)); err == nil {
		mark.EpochID = id
	}
	if mark.OwnLog != "" {
		if mark.Through, err = strconv.ParseUint(header.Get(headerThrough), 10, 64); err != nil {
			return mark, false, fmt.Errorf("headers of sequence %d: %w", mark.Seq, err)
		}
	}
	if mark.Type, err = payloadType(answer.Message.Data); err != nil {
		return mark, false, fmt.Errorf("sequence %d: %w", mark.Seq, err)
	}
	return mark, true, nil
}

// LastSequence gives the stream's last sequence, of events and commands alike, as its leader has
// it; 0 when there is no stream.
func (l *Logs) LastSequence(ctx context.Context, hub domain.HubID) (uint64, error) {
	// A stale answer would begin a hub's log anew before events that belong to the former one:
	// readers would see them again. Only a leader that hears a majority is believed, and ingest
	// writes on condition of what it has read.
	b, err := l.bounds(ctx, hub, 0)
	return b.last, err
}

// bounds are the first and the last sequence of a stream; first is last+1 when it holds nothing.
type bounds struct{ first, last uint64 }

// bounds asks the stream's leader, which must confirm an end before the sequence seen. Without a
// stream they are 1 and 0.
func (l *Logs) bounds(ctx context.Context, hub domain.HubID, seen uint64) (bounds, error) {
	state, err := streams.AskLast(
		ctx, l.shard(hub).nc, streams.JetStreamPrefix, streams.HubStream(hub), seen,
	)
	if errors.Is(err, streams.ErrNoStream) {
		return bounds{first: 1}, nil
	}
	if err != nil {
		return bounds{}, fmt.Errorf("hub log of %s: %w", hub, err)
	}
	l.correctRetention(hub, state.Config.MaxAge)
	return boundsOf(state), nil
}

func boundsOf(s *streams.StreamState) bounds {
	b := bounds{first: s.State.First, last: s.State.Last}
	if s.State.Messages == 0 {
		b.first = b.last + 1
	}
	return b
}

// settle waits until everything that the stream has announced is on disk. A direct get comes after
// the batch that is being stored; this one asks for a message that will never be. It goes over the
// connection of the feed, so that a broker that was started anew in between shows as a
// reconnection.
//
// Any copy of the stream may answer, also one that is behind, and that is enough: a stream with
// several copies announces only what a majority has stored already, and one with a single copy has
// a single server to answer.
func (l *Logs) awaitDurable(ctx context.Context, hub domain.HubID) error {
	if _, err := streams.Ask(ctx, l.shard(hub).nc, directGet(hub), barrierRequest); err != nil {
		return fmt.Errorf("hub log of %s: wait for the last batch: %w", hub, err)
	}
	return nil
}

// barrierRequest is a direct get of the highest sequence that there can be.
var barrierRequest = []byte(`{"seq":18446744073709551615}`)

// directGet is the subject of direct gets from the hub's stream.
func directGet(hub domain.HubID) string { return "$JS.API.DIRECT.GET." + streams.HubStream(hub) }

// ask puts a question to the broker's API about the hub's stream and decodes the answer.
func (l *Logs) ask(
	ctx context.Context, hub domain.HubID, api string, request []byte, answer any,
) error {
	return ask(ctx, l.shard(hub).nc, api+streams.HubStream(hub), request, answer)
}

// ask puts a question to the broker's API and decodes the answer.
func ask(ctx context.Context, nc *nats.Conn, subject string, request []byte, answer any) error {
	text, err := streams.Ask(ctx, nc, subject, request)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, answer); err != nil {
		return fmt.Errorf("the broker's answer: %w", err)
	}
	return nil
}
