package journal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/jsapi"
)

// readRecords is the most records that one Read returns, and so the most commits that it walks
// through beside those on the way to them.
const readRecords = 256

// Reader reads the records of single hubs from the journal of one group. It is safe for concurrent
// use.
type Reader struct {
	journal *Journal
	group   int
	// expired is a sequence before which all commits are known to have expired.
	expired atomic.Uint64
}

// NewReader returns a reader of a group's journal. The readers of a Journal share a cache.
func (j *Journal) NewReader(group int) *Reader { return &Reader{journal: j, group: group} }

// Read returns the hub's records from one sequence on, oldest first and without a gap: up to the
// sequence to or the tip's, at most 256 and at most maxBytes of payloads, but at least one. tip is
// what an index has of the hub. The records are copies. ErrGone means that the journal does not
// have the record from: it has expired, or was never written to the journal.
func (r *Reader) Read(
	ctx context.Context, hub domain.HubID, tip Tip, from, to uint64, maxBytes int,
) ([]Record, error) {
	to = min(to, tip.Seq)
	if from == 0 || from > to {
		return nil, fmt.Errorf("%w: %s: sequences %d to %d", ErrGone, hub, from, to)
	}
	to = min(to, from+readRecords-1)
	at, err := r.find(ctx, hub, tip, to)
	if err != nil {
		return nil, err
	}
	found := newest{max: maxBytes}
	for {
		for i := len(at.commit.Records) - 1; i >= 0; i-- {
			record := &at.commit.Records[i]
			if record.Hub == hub && record.Seq >= from && record.Seq <= to {
				found.add(record)
			}
		}
		if at.link.First <= from {
			return found.records(hub), nil
		}
		if at, err = r.former(ctx, at, at.link.Prev); err != nil {
			return nil, err
		}
	}
}

// Oldest returns the sequence of the hub's oldest record that the journal has and that was stored
// at since or later, or ErrGone if there is none.
func (r *Reader) Oldest(
	ctx context.Context, hub domain.HubID, tip Tip, since time.Time,
) (uint64, error) {
	at, err := r.last(ctx, hub, tip)
	if err != nil {
		return 0, err
	}
	// By anchors as long as they have not expired, then by single commits.
	for _, next := range []func(*Link) uint64{
		func(l *Link) uint64 { return l.anchor },
		func(l *Link) uint64 { return l.Prev },
	} {
		for {
			older, err := r.former(ctx, at, next(at.link))
			if errors.Is(err, ErrGone) || err == nil && older.link.LastTime.Before(since) {
				break
			}
			if err != nil {
				return 0, err
			}
			at = older
		}
	}
	for i := range at.commit.Records {
		if record := &at.commit.Records[i]; record.Hub == hub && !record.Time.Before(since) {
			return record.Seq, nil
		}
	}
	return 0, fmt.Errorf("%w: %s: no record since %v", ErrGone, hub, since)
}

// place is a commit with its link for one hub.
type place struct {
	commit *Commit
	link   *Link
}

// find returns the commit with the hub's record seq, which must not be after the tip.
func (r *Reader) find(
	ctx context.Context, hub domain.HubID, tip Tip, seq uint64,
) (place, error) {
	at, err := r.last(ctx, hub, tip)
	if err != nil {
		return place{}, err
	}
	blocks := true // until an anchor is before the record
	for at.link.First > seq {
		if blocks {
			anchor, err := r.former(ctx, at, at.link.anchor)
			switch {
			case err == nil && anchor.link.Last >= seq:
				at = anchor
				continue
			case err != nil && !errors.Is(err, ErrGone):
				return place{}, err
			}
			blocks = false
		}
		if at, err = r.former(ctx, at, at.link.Prev); err != nil {
			return place{}, err
		}
	}
	return at, nil
}

// former returns the place in a former commit of the hub, whose sequence is 0 if there is none.
func (r *Reader) former(ctx context.Context, at place, seq uint64) (place, error) {
	if seq == 0 {
		return place{}, fmt.Errorf(
			"%w: %s: before sequence %d", ErrGone, at.link.Hub, at.link.First,
		)
	}
	former, err := r.load(ctx, at.link.Hub, seq)
	if errors.Is(err, ErrGone) && seq == at.link.Prev {
		former, err = r.overLost(ctx, at, err)
	}
	if err == nil && (former.link.Last >= at.link.First ||
		seq == at.link.Prev && former.link.Last != at.link.First-1) {
		err = groupError(r.group, fmt.Errorf(
			"%w: commit %d of %s does not precede commit %d", ErrUnreadable, seq, at.link.Hub,
			at.commit.Seq,
		))
	}
	return former, err
}

// load returns a hub's place in a commit. ErrGone means that the commit has expired or is lost.
func (r *Reader) load(ctx context.Context, hub domain.HubID, seq uint64) (place, error) {
	c, err := r.commit(ctx, seq)
	if errors.Is(err, jsapi.ErrNotFound) {
		return place{}, fmt.Errorf("%w: %s: commit %d has expired", ErrGone, hub, seq)
	}
	if err == nil {
		for i := range c.Links {
			if c.Links[i].Hub == hub {
				return place{c, &c.Links[i]}, nil
			}
		}
		err = fmt.Errorf("%w: commit %d has no record of %s", ErrUnreadable, seq, hub)
	}
	return place{}, groupError(r.group, err)
}

// directTimeout is how long any replica may take to answer: the broker may ask one that is cut off.
const directTimeout = time.Second / 2

// commit returns a commit from the cache, from any replica or, if that does not have it or does not
// answer, from the journal's leader.
func (r *Reader) commit(ctx context.Context, seq uint64) (*Commit, error) {
	j, key := r.journal, cacheKey{r.group, seq}
	if c := j.cache.get(key); c != nil {
		j.metrics.cacheHits.Inc()
		return c, nil
	}
	j.metrics.reads.Inc()
	stream := streams.JournalStream(r.group)
	direct, cancel := context.WithTimeout(ctx, directTimeout)
	near, err := j.api.GetDirect(direct, stream, seq)
	cancel()
	data := near.Data
	if err != nil {
		msg, err := j.api.Get(ctx, stream, seq)
		if err != nil {
			return nil, err
		}
		data = msg.Data
	}
	c, err := unmarshalAt(seq, data)
	if err != nil {
		return nil, err
	}
	j.cache.put(key, &c, len(data))
	return &c, nil
}

// newest collects records from the newest to the oldest, and drops the newest ones while it has too
// many bytes.
type newest struct {
	max, bytes int
	// newestFirst has the records from the index first on.
	newestFirst []Record
	first       int
	// texts are the last record's.
	texts [3]string
}

// add adds a copy of a record, which shares no memory with its commit.
func (n *newest) add(r *Record) {
	kept := *r
	kept.Payload = bytes.Clone(r.Payload)
	for i, text := range []*string{&kept.OrgID, &kept.OwnLog, &kept.Connection} {
		if *text != n.texts[i] {
			n.texts[i] = strings.Clone(*text)
		}
		*text = n.texts[i]
	}
	n.newestFirst = append(n.newestFirst, kept)
	n.bytes += len(kept.Payload)
	for n.bytes > n.max && n.first < len(n.newestFirst)-1 {
		n.bytes -= len(n.newestFirst[n.first].Payload)
		n.newestFirst[n.first] = Record{}
		n.first++
	}
}

// records returns the records, the oldest first.
func (n *newest) records(hub domain.HubID) []Record {
	all := n.newestFirst[n.first:]
	slices.Reverse(all)
	for i := range all {
		all[i].Hub = hub
	}
	return all
}
