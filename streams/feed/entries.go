package feed

import (
	"context"
	"errors"
	"fmt"
	"time"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/jsapi"
)

// Entry is an event of a hub's log, or a state that readers of events do not see.
type Entry struct {
	Seq uint64
	// Time is when the record was stored.
	Time time.Time
	// State reports that Payload is a state, as AppendState stored it, and no event.
	State bool
	// Number is the hub's number of an event of the hub, and the last number that
	// hub.events_skipped stands for; 0 if there is none.
	Number uint64
	// EpochID is the id of the log's epoch when the record was stored.
	EpochID domain.EpochID
	// OrgID is the organization that had the hub; it may be empty.
	OrgID string
	// Payload is the stored event or the state. It must not be changed.
	Payload []byte
}

// Entries returns the events and states of a hub's log from the sequence from on, in order, as many
// as one read returns, and the sequence up to which it has read: at most to. Records that have
// expired, or that do not belong to the log's epoch, are left out. Everything up to to must have
// been stored. Errors: not_found for a hub without an organization, and service_unavailable.
func (l *Logs) Entries(
	ctx context.Context, hub domain.HubID, from, to uint64,
) (entries []Entry, through uint64, err error) {
	epoch, err := l.epoch(hub)
	if err != nil {
		return nil, 0, err
	}
	if from = max(from, epoch.After+1); from > to {
		return nil, to, nil
	}
	messages, err := l.records(ctx, hub, from, to)
	var gone *goneError
	if errors.As(err, &gone) {
		return nil, to, nil
	}
	if err != nil {
		return nil, 0, unavailable(err)
	}
	for _, m := range messages {
		through = m.seq
		if (m.event || m.state) && epoch.Has(m.seq, m.epoch) {
			entries = append(entries, m.entry())
		}
	}
	return entries, through, nil
}

// States calls each with the states of a hub's log that have not expired, oldest first, as far as
// the hub's stream has them: it may lack the newest ones. States that do not belong to the log's
// epoch are left out. Errors: not_found for a hub without an organization, and service_unavailable.
func (l *Logs) States(ctx context.Context, hub domain.HubID, each func(Entry)) error {
	epoch, err := l.epoch(hub)
	if err != nil {
		return err
	}
	request := jsapi.BatchRequest{
		From: epoch.After + 1, Filter: streams.CommandSubject(hub), Messages: maxGet,
		Bytes: maxGetBytes,
	}
	for {
		found, err := l.shard(hub).get(ctx, hub, request)
		if err != nil {
			return unavailable(fmt.Errorf("hub log of %s: read states: %w", hub, err))
		}
		if len(found) == 0 {
			return nil
		}
		for _, m := range found {
			if m.state && epoch.Has(m.seq, m.epoch) {
				each(m.entry())
			}
		}
		request.From = found[len(found)-1].seq + 1
	}
}

// entry returns an event or a state in its exported form.
func (m stored) entry() Entry {
	return Entry{
		Seq: m.seq, Time: m.at, State: m.state, Number: m.number, EpochID: m.epoch, OrgID: m.org,
		Payload: m.data,
	}
}
