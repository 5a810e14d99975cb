package projections

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"hubcloud/domain"
	"hubcloud/streams"
)

const (
	// presenceBatch is the most presences that are written in one transaction.
	presenceBatch = 1000
	// presenceLook is how often it is looked whether the watch has fallen asleep: whoever watches a
	// bucket hears of a lost connection late.
	presenceLook = time.Second
)

// errAsleep says that the bucket has more than the watch has given.
var errAsleep = errors.New("the watch of the presence bucket has fallen behind")

// presenceEntry is one change of the bucket.
type presenceEntry struct {
	seq      uint64
	hub      domain.HubID
	deleted  bool
	presence domain.Presence
	err      error
}

// presenceSource makes the table hub_presence.
type presenceSource struct {
	bucket jetstream.KeyValue
}

func (p *presenceSource) name() string { return PresenceProjection }

// head returns the bucket's last revision, which its leader must confirm when it is before seen.
// The bucket keeps one value a key, and the last one written is never removed.
func (p *presenceSource) head(ctx context.Context, seen uint64) (uint64, error) {
	return streams.LastRevision(ctx, p.bucket, seen)
}

// storedAt gives when the first entry at a revision or behind it was stored, and false when there
// is none.
func (p *presenceSource) storedAt(ctx context.Context, seq uint64) (time.Time, bool, error) {
	ctx, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	watch, err := p.bucket.WatchAll(ctx, jetstream.ResumeFromRevision(seq), jetstream.MetaOnly())
	if err != nil {
		return time.Time{}, false, err
	}
	defer endWatch(watch)
	select {
	case entry := <-watch.Updates():
		if entry == nil {
			return time.Time{}, false, nil
		}
		return entry.Created(), true, nil
	case <-ctx.Done():
		return time.Time{}, false, ctx.Err()
	}
}

// endWatch ends a watch, which it does only when nothing waits to be taken.
func endWatch(watch jetstream.KeyWatcher) {
	_ = watch.Stop() // fails only with the connection, which ends it too
	for range watch.Updates() {
	}
}

func (p *presenceSource) follow(
	ctx context.Context, after uint64, fn func([]presenceEntry) error,
) error {
	watching, cancel := context.WithCancel(ctx)
	defer cancel()
	watch, err := p.bucket.WatchAll(watching, jetstream.ResumeFromRevision(after+1))
	if err != nil {
		return err
	}
	defer endWatch(watch)
	look := time.NewTicker(presenceLook)
	defer look.Stop()
	given, seen := after, after
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-look.C:
			if given < seen {
				return errAsleep
			}
			// What is there now must have come by the next look.
			if seen, err = p.head(ctx, seen); err != nil {
				return err
			}
		case entry, ok := <-watch.Updates():
			if !ok {
				return errAsleep
			}
			batch := gather(entry, watch.Updates())
			if len(batch) == 0 {
				continue // only the mark that separates what was there from what is new
			}
			if err := fn(batch); err != nil {
				return err
			}
			given = batch[len(batch)-1].seq
		}
	}
}

// gather takes what is there already, up to a batch.
func gather(first jetstream.KeyValueEntry, more <-chan jetstream.KeyValueEntry) []presenceEntry {
	var batch []presenceEntry
	for entry := first; ; {
		if entry != nil {
			batch = append(batch, readPresence(entry))
		}
		if len(batch) == presenceBatch {
			return batch
		}
		var ok bool
		select {
		case entry, ok = <-more:
			if !ok {
				return batch
			}
		default:
			return batch
		}
	}
}

func readPresence(entry jetstream.KeyValueEntry) presenceEntry {
	read := presenceEntry{seq: entry.Revision(), hub: domain.HubID(entry.Key())}
	if entry.Operation() != jetstream.KeyValuePut {
		read.deleted = true
		return read
	}
	if err := json.Unmarshal(entry.Value(), &read.presence); err != nil {
		read.err = fmt.Errorf("presence of %s: %w", read.hub, err)
	}
	return read
}

func (p *presenceSource) mark(entry presenceEntry) mark {
	return mark{seq: entry.seq, kind: "presence", err: entry.err}
}

// statements writes the last that a batch says of each hub.
func (p *presenceSource) statements(batch []presenceEntry) ([]statement, error) {
	var last rows[domain.HubID, presenceEntry]
	for _, entry := range batch {
		if row := last.of(entry.hub); row != nil {
			*row = entry
		} else {
			last.put(entry.hub, entry)
		}
	}
	var written []presenceEntry
	var deleted []string
	for _, entry := range last.list {
		if entry.deleted {
			deleted = append(deleted, storable(string(entry.hub)))
		} else {
			written = append(written, entry)
		}
	}
	// Whoever waits for this projection waits for the commit itself, and what a crash takes back is
	// read again from the checkpoint.
	all := []statement{
		{
			what: "commit without waiting for the disk",
			sql:  "SET LOCAL synchronous_commit = off",
			rows: anyRows,
		},
	}
	if len(written) > 0 {
		all = append(
			all,
			statement{what: "write presence", sql: upsertPresence, rows: len(written), args: []any{
				column(written, func(e presenceEntry) string { return storable(string(e.hub)) }),
				column(written, func(e presenceEntry) bool { return e.presence.Online }),
				column(written, func(e presenceEntry) time.Time { return e.presence.Since }),
				column(
					written, func(e presenceEntry) *string { return textOf(e.presence.PublicIP) },
				),
				column(written, func(e presenceEntry) *string { return reasonOf(e.presence) }),
				column(
					written, func(e presenceEntry) *string { return objectOf(e.presence.Firmware) },
				),
				column(
					written, func(e presenceEntry) *string { return objectOf(e.presence.Network) },
				),
			}},
		)
	}
	if len(deleted) > 0 {
		all = append(
			all,
			statement{
				what: "remove presence",
				sql:  deletePresence,
				rows: anyRows,
				args: []any{deleted},
			},
		)
	}
	return all, nil
}

// textOf gives nil for what was not said.
func textOf(s string) *string {
	if s == "" {
		return nil
	}
	s = storable(s)
	return &s
}

// reasonOf gives why a hub is not connected; a hub that is has none.
func reasonOf(p domain.Presence) *string {
	if p.Online || p.Reason == nil {
		return nil
	}
	return textOf(*p.Reason)
}

// objectOf gives the text of a JSON value; what is missing and null are the same.
func objectOf(raw json.RawMessage) *string {
	if string(raw) == "null" {
		return nil
	}
	return textOf(string(raw))
}
