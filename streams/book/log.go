package book

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/jsapi"
)

const (
	// readMessages and readBytes bound what is read at once.
	readMessages, readBytes = 500, 1 << 20
	// readEvery is how often the stream is looked at for new entries.
	readEvery = time.Second
	// noHub stands for the hub of entries without one.
	noHub = "-"
)

// Log is the stream of all books. It is safe for concurrent use.
type Log struct {
	nc  *nats.Conn
	api jsapi.API
}

// Open opens the stream, and creates it if it is missing. A stream with another configuration is
// streams.ErrIncompatible.
func Open(ctx context.Context, nc *nats.Conn, replicas int) (*Log, error) {
	js, err := jetstream.New(nc)
	if err == nil {
		_, err = streams.Declare(ctx, js, jetstream.StreamConfig{
			Name: streams.BookStream, Subjects: []string{streams.BookFilter},
			Description: "what organizations keep of their events", Storage: jetstream.FileStorage,
			Replicas: replicas, MaxAge: (domain.MaxBookDays + 1) * 24 * time.Hour,
			AllowDirect: true, AllowAtomicPublish: true,
		})
	}
	if err != nil {
		return nil, fmt.Errorf("open the books: %w", err)
	}
	return New(nc), nil
}

// New returns the stream, which must exist.
func New(nc *nats.Conn) *Log { return &Log{nc, jsapi.New(nc)} }

// Item is a message of the stream: an entry, or a cut, or neither for messages that were purged
// before they were read.
type Item struct {
	Seq   uint64
	Entry *domain.BookEntry
	Cut   *domain.BookCut
	// Err is why the message cannot be read.
	Err error
}

// Head returns the stream's last sequence. seen is a sequence that the caller has read, or 0.
func (l *Log) Head(ctx context.Context, seen uint64) (uint64, error) {
	info, err := l.api.ConfirmedInfo(ctx, streams.BookStream, seen)
	if err != nil {
		return 0, err
	}
	return info.State.LastSeq, nil
}

// StoredAt returns when the first message from a sequence on was stored; false if there is none.
func (l *Log) StoredAt(ctx context.Context, seq uint64) (time.Time, bool, error) {
	msg, err := l.api.GetNext(ctx, streams.BookStream, seq, streams.BookFilter)
	if errors.Is(err, jsapi.ErrNotFound) {
		return time.Time{}, false, nil
	}
	if err != nil {
		return time.Time{}, false, err
	}
	return msg.Time, true, nil
}

// Has reports whether the stream still has a message.
func (l *Log) Has(ctx context.Context, seq uint64) (bool, error) {
	_, err := l.api.Get(ctx, streams.BookStream, seq)
	if errors.Is(err, jsapi.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// Follow calls fn with all messages after a sequence, in order, and with new ones within readEvery,
// until fn fails, ctx ends or the connection is closed. It waits while the broker does not answer.
func (l *Log) Follow(ctx context.Context, after uint64, fn func([]Item) error) error {
	for {
		head, err := l.Head(ctx, after)
		for err == nil && after < head {
			var items []Item
			if items, err = l.read(ctx, after+1, head); err != nil {
				break
			}
			if err := fn(items); err != nil {
				return err
			}
			after = items[len(items)-1].Seq
		}
		if l.nc.IsClosed() {
			return nats.ErrConnectionClosed
		}
		if !streams.Sleep(ctx, readEvery) {
			return ctx.Err()
		}
	}
}

// read returns messages from one sequence on up to another, at least one item.
func (l *Log) read(ctx context.Context, from, head uint64) (items []Item, err error) {
	msgs, err := l.batch(ctx, from, "")
	if err != nil {
		return nil, err
	}
	for _, m := range msgs {
		items = append(items, itemOf(m.Sequence, jsapi.Field(m.Header, jsapi.HeaderSubject), m.Data))
	}
	if len(items) > 0 {
		return items, nil
	}
	// Nothing is left up to the end, or the replica that answered is behind.
	next, err := l.api.GetNext(ctx, streams.BookStream, from, streams.BookFilter)
	if errors.Is(err, jsapi.ErrNotFound) {
		return []Item{{Seq: head}}, nil
	}
	if err != nil {
		return nil, err
	}
	return []Item{itemOf(next.Sequence, next.Subject, next.Data)}, nil
}

// batch returns messages from a sequence on whose subjects match a filter; "" matches all.
func (l *Log) batch(ctx context.Context, from uint64, filter string) ([]jsapi.Message, error) {
	ctx, cancel := context.WithTimeout(ctx, jsapi.Patience)
	defer cancel()
	return l.api.GetBatch(ctx, jsapi.BatchRequest{
		Stream: streams.BookStream, From: from, Filter: filter, Messages: readMessages,
		Bytes: readBytes,
	})
}

func itemOf(seq uint64, subject string, data []byte) Item {
	item := Item{Seq: seq}
	var into any
	if strings.HasPrefix(subject, streams.BookCutSubject("")) {
		item.Cut = &domain.BookCut{}
		into = item.Cut
	} else {
		item.Entry = &domain.BookEntry{}
		into = item.Entry
	}
	if err := json.Unmarshal(data, into); err != nil {
		return Item{Seq: seq, Err: fmt.Errorf("entry of a book: %w", err)}
	}
	if item.Cut != nil && item.Cut.Before == 0 {
		item.Cut.Before = seq
	}
	return item
}

// last returns the last entry of an organization's book, and its sequence; 0 without one.
func (l *Log) last(ctx context.Context, org string) (e domain.BookEntry, seq uint64, err error) {
	msg, err := l.api.GetLast(ctx, streams.BookStream, entriesOf(org))
	if errors.Is(err, jsapi.ErrNotFound) {
		return e, 0, nil
	}
	if err != nil {
		return e, 0, err
	}
	return e, msg.Sequence, json.Unmarshal(msg.Data, &e)
}

// entriesOf is the filter of the entries of an organization.
func entriesOf(org string) string { return streams.BookEntrySubject(org, "*", "*") }

// append appends entries of an organization's book after the one with the sequence last, and returns
// the sequence of the last one.
func (l *Log) append(
	ctx context.Context, org string, last uint64, entries []domain.BookEntry,
) (uint64, error) {
	msgs := make([]*nats.Msg, len(entries))
	for i, e := range entries {
		hub := string(e.HubID)
		if hub == "" {
			hub = noHub
		}
		data, err := json.Marshal(e)
		if err != nil {
			return last, err
		}
		msgs[i] = nats.NewMsg(streams.BookEntrySubject(org, hub, string(e.Kind)))
		msgs[i].Data = data
	}
	jsapi.ExpectLast(msgs[0], entriesOf(org), last)
	return jsapi.Append(ctx, l.nc, msgs...)
}

// cut deletes entries. A process that is killed before they are purged finds them again.
func (l *Log) cut(ctx context.Context, c domain.BookCut) error {
	data, err := json.Marshal(c)
	if err != nil {
		return err
	}
	msg := nats.NewMsg(streams.BookCutSubject(c.OrgID))
	msg.Data = data
	seq, err := jsapi.Append(ctx, l.nc, msg)
	if err != nil {
		return err
	}
	if c.Before == 0 {
		c.Before = seq
	}
	hub, kind := "*", "*"
	if c.HubID != "" {
		hub = string(c.HubID)
	}
	if c.Kind != "" {
		kind = string(c.Kind)
	}
	return l.api.Purge(ctx, streams.BookStream, streams.BookEntrySubject(c.OrgID, hub, kind), c.Before)
}

// sweep deletes the entries of an organization that its book does not keep at a time: of kinds that
// are not chosen, of hubs that are not among those that hubs returns, and the oldest ones, also those
// beyond most. It reports whether there were any.
func (l *Log) sweep(
	ctx context.Context, org string, settings domain.BookSettings, now time.Time, most uint64,
	hubs func() (map[domain.HubID]bool, error),
) (cut bool, err error) {
	counts, err := l.api.SubjectCounts(ctx, streams.BookStream, entriesOf(org))
	if err != nil || len(counts) == 0 {
		return false, err
	}
	known, err := hubs() // after the count: the hubs of all that was counted were added by then
	if err != nil {
		return false, err
	}
	entries, cuts := uint64(0), map[domain.BookCut]bool{}
	for subject, count := range counts {
		place := strings.Split(subject, ".") // as BookEntrySubject has written it
		hub, kind := domain.HubID(place[3]), domain.BookKind(place[4])
		switch {
		case len(settings.Kinds) == 0:
			cuts[domain.BookCut{OrgID: org}] = true
		case hub != noHub && !known[hub]:
			cuts[domain.BookCut{OrgID: org, HubID: hub}] = true
		case !settings.Kept(kind):
			cuts[domain.BookCut{OrgID: org, Kind: kind}] = true
		default:
			entries += count
		}
	}
	if len(settings.Kinds) > 0 {
		before, err := l.oldestKept(ctx, org, settings.Oldest(now), max(entries, most)-most)
		if err != nil {
			return false, err
		}
		if before > 0 {
			cuts[domain.BookCut{OrgID: org, Before: before}] = true
		}
	}
	for c := range cuts {
		if err := l.cut(ctx, c); err != nil {
			return false, err
		}
	}
	return len(cuts) > 0, nil
}

// oldestKept returns the sequence of an organization's first entry that was stored at a time or later
// and has excess ones before it, or what follows the last one; 0 if that is the first one of all.
func (l *Log) oldestKept(
	ctx context.Context, org string, oldest time.Time, excess uint64,
) (uint64, error) {
	for passed, next := uint64(0), uint64(1); ; {
		msgs, err := l.batch(ctx, next, entriesOf(org))
		if err != nil {
			return 0, err
		}
		for _, m := range msgs {
			at, err := time.Parse(time.RFC3339Nano, jsapi.Field(m.Header, jsapi.HeaderTime))
			switch {
			case err != nil:
				return 0, err
			case passed >= excess && !at.Before(oldest) && passed == 0:
				return 0, nil
			case passed >= excess && !at.Before(oldest):
				return m.Sequence, nil
			}
			passed, next = passed+1, m.Sequence+1
		}
		if len(msgs) == 0 && passed == 0 {
			return 0, nil
		} else if len(msgs) == 0 {
			return next, nil
		}
	}
}
