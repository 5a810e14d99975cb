package projector

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/nats-io/nats.go/jetstream"

	"hubcloud/domain"
	"hubcloud/projections/schema"
	"hubcloud/streams/jsapi"
)

//go:embed sql/delete_presence.sql
var deletePresence string

const (
	// presenceBatch is the most entries in one transaction.
	presenceBatch = 1000
	// stallCheck is the time between two checks whether the watch has stalled: a watch reports a
	// lost connection late.
	stallCheck = time.Second
)

// errStalled means that the watch has not delivered entries that the bucket has. The caller must
// call Follow again.
var errStalled = errors.New("the watch of the presence bucket has stalled")

// presenceEntry is one change of the presence bucket.
type presenceEntry struct {
	revision uint64
	hub      domain.HubID
	deleted  bool
	presence domain.Presence
	err      error
}

// PresenceSource is the Source of the projection schema.Presence. Its sequences are the
// revisions of the bucket.
type PresenceSource struct {
	Bucket jetstream.KeyValue
	// Announce makes each commit announce its hubs, which may need attention.
	Announce bool
}

// Name returns schema.Presence.
func (p *PresenceSource) Name() string { return schema.Presence }

// Head returns the bucket's last revision. The bucket keeps only the newest value of each key, but
// never loses its last revision.
func (p *PresenceSource) Head(ctx context.Context, seen uint64) (uint64, error) {
	return jsapi.LastRevision(ctx, p.Bucket, seen)
}

// StoredAt returns when the first entry at a revision or after it was stored, and false if there
// is none.
func (p *PresenceSource) StoredAt(ctx context.Context, revision uint64) (time.Time, bool, error) {
	entry, err := p.first(ctx, func(ctx context.Context) (jetstream.KeyWatcher, error) {
		return p.Bucket.WatchAll(ctx, jetstream.ResumeFromRevision(revision), jetstream.MetaOnly())
	})
	if entry == nil || err != nil {
		return time.Time{}, false, err
	}
	return entry.Created(), true, nil
}

// HubRevision returns the revision of a hub's newest value or deletion; 0 if the hub has neither.
func (p *PresenceSource) HubRevision(ctx context.Context, hub string) (uint64, error) {
	getting, cancel := context.WithTimeout(ctx, schema.AnswerTimeout)
	defer cancel()
	entry, err := p.Bucket.Get(getting, hub)
	switch {
	case err == nil:
		return entry.Revision(), nil
	case errors.Is(err, jetstream.ErrInvalidKey): // only in a row that was written by hand
		return 0, nil
	case !errors.Is(err, jetstream.ErrKeyNotFound):
		return 0, err
	}
	// Get does not return deletions.
	deleted, err := p.first(ctx, func(ctx context.Context) (jetstream.KeyWatcher, error) {
		return p.Bucket.Watch(ctx, hub, jetstream.MetaOnly())
	})
	if deleted == nil || err != nil {
		return 0, err
	}
	return deleted.Revision(), nil
}

// first returns the first entry of a watch; nil if there is none yet.
func (p *PresenceSource) first(
	ctx context.Context, watch func(ctx context.Context) (jetstream.KeyWatcher, error),
) (jetstream.KeyValueEntry, error) {
	ctx, cancel := context.WithTimeout(ctx, schema.AnswerTimeout)
	defer cancel()
	watcher, err := watch(ctx)
	if err != nil {
		return nil, err
	}
	defer endWatch(watcher)
	select {
	case entry := <-watcher.Updates():
		return entry, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// endWatch ends a watch. It receives the entries that are under way, without which the watch would
// not end.
func endWatch(watch jetstream.KeyWatcher) {
	_ = watch.Stop() // fails only with the connection, which ends the watch too
	for range watch.Updates() {
	}
}

// Follow implements Source. It fails with errStalled if the watch stalls.
func (p *PresenceSource) Follow(
	ctx context.Context, at Checkpoint, fn func([]presenceEntry) error,
) error {
	after := at.Sequence
	watching, cancel := context.WithCancel(ctx)
	defer cancel()
	watch, err := p.Bucket.WatchAll(watching, jetstream.ResumeFromRevision(after+1))
	if err != nil {
		return err
	}
	defer endWatch(watch)
	check := time.NewTicker(stallCheck)
	defer check.Stop()
	delivered, expected := after, after
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-check.C:
			if delivered < expected {
				return errStalled
			}
			// The watch must deliver what is stored now by the next check.
			if expected, err = p.Head(ctx, expected); err != nil {
				return err
			}
		case entry, ok := <-watch.Updates():
			if !ok {
				return errStalled
			}
			batch := gather(entry, watch.Updates())
			if len(batch) == 0 {
				continue // the nil entry between stored and new values
			}
			if err := fn(batch); err != nil {
				return err
			}
			delivered = batch[len(batch)-1].revision
		}
	}
}

// gather returns an entry and the ones that have arrived after it, at most presenceBatch.
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
	read := presenceEntry{revision: entry.Revision(), hub: domain.HubID(entry.Key())}
	if entry.Operation() != jetstream.KeyValuePut {
		read.deleted = true
		return read
	}
	if err := json.Unmarshal(entry.Value(), &read.presence); err != nil {
		read.err = fmt.Errorf("presence of %s: %w", read.hub, err)
	}
	return read
}

// Header implements Source.
func (p *PresenceSource) Header(entry presenceEntry) Header {
	return Header{Sequence: entry.revision, Type: "presence", Err: entry.err}
}

// Permanent implements Source.
func (p *PresenceSource) Permanent(err error) bool { return IsPermanent(err) }

// Statements writes the last entry of each hub in the batch.
func (p *PresenceSource) Statements(
	_ context.Context, _ *pgx.Conn, batch []presenceEntry,
) ([]schema.Statement, error) {
	var last rows[domain.HubID, presenceEntry]
	for _, entry := range batch {
		if row := last.get(entry.hub); row != nil {
			*row = entry
		} else {
			last.put(entry.hub, entry)
		}
	}
	var written []schema.PresenceRow
	var deleted []string
	for _, entry := range last.list {
		if entry.deleted {
			deleted = append(deleted, schema.StorableText(string(entry.hub)))
		} else {
			written = append(written, presenceRow(entry))
		}
	}
	all := statements{withoutDisk}
	all.add(schema.HubPresence.Insert(written))
	all.add(changeAny(
		"delete presence", deletePresence, deleted,
		column(func(hub string) string { return hub }),
	))
	if p.Announce {
		all.add(schema.AnnounceAttention(values(written, func(row schema.PresenceRow) string {
			return row.HubID
		}), false))
	}
	return all, nil
}

func presenceRow(entry presenceEntry) schema.PresenceRow {
	row := schema.PresenceRow{
		HubID: schema.StorableText(string(entry.hub)), Online: entry.presence.Online,
		Since: entry.presence.Since, PublicIP: nullIfEmpty(entry.presence.PublicIP),
		Firmware: jsonText(entry.presence.Firmware), Network: jsonText(entry.presence.Network),
	}
	if reason := entry.presence.Reason; !row.Online && reason != nil {
		row.Reason = nullIfEmpty(*reason)
	}
	return row
}

func nullIfEmpty(s string) *string {
	if s == "" {
		return nil
	}
	s = schema.StorableText(s)
	return &s
}

// jsonText returns the text of a JSON value; nil for a missing value and for null.
func jsonText(raw json.RawMessage) *string {
	if string(raw) == "null" {
		return nil
	}
	return nullIfEmpty(string(raw))
}
