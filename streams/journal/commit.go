package journal

import (
	"errors"
	"fmt"
	"time"

	"hubcloud/domain"
)

// Commit is one message of a journal: records of many hubs, stored together or not at all.
type Commit struct {
	// Seq is the sequence in the journal.
	Seq uint64
	// Term is the writer's. Terms never fall from one commit to the next.
	Term uint64
	// Time is the time of the last record in the journal, up to and including this commit. It is
	// zero while the journal has had no record.
	Time time.Time
	// Records are in the order of their times. A commit that begins a term has none.
	Records []Record
	// Links has one entry for each hub that has records in the commit, in the order of their first
	// ones.
	Links []Link
	// id differs from the id of every other commit, also of the same term.
	id commitID
}

// Link describes the records of one hub in a commit, and the place of the commit in the chain of
// the hub's commits. A chain begins with the first commit after the hub was unknown to the index of
// the writer. Every blockLength'th commit of a chain is an anchor, so that a reader can step back
// over a whole block of commits at once.
type Link struct {
	Hub domain.HubID
	// First and Last are the sequences of the hub's first and last record in the commit.
	First, Last uint64
	// HubEvent, CloudEvent and State are the sequences of the last event of the hub, of the last
	// event of the cloud and of the last state in the commit; 0 for none.
	HubEvent, CloudEvent, State uint64
	// Events is how many events the hub's log has had up to and including this commit, and
	// eventsBefore how many before it.
	Events, eventsBefore uint64
	// LastTime is the time of the record with the sequence Last.
	LastTime time.Time
	// Prev is the journal sequence of the commit before this one that has records of the hub; 0
	// for the first commit of a chain.
	Prev uint64
	// anchor is the journal sequence of the last anchor before this commit; 0 for the first commit
	// of a chain.
	anchor uint64
	// number counts the commits of the chain from 0, modulo blockLength. Those with 0 are anchors.
	number uint8
}

// blockLength is how many commits of a chain are from one anchor to the next. It is as many as
// Link.number counts.
const blockLength = 256

// commitID identifies a commit: 8 random bytes of the writer, and the writer's count of commits.
type commitID [16]byte

// NewCommit returns the commit of records that has the sequence seq in the journal. tip returns
// what the index knows of a hub after all commits before seq; false means nothing. The records must
// be valid, their times must grow strictly, and the records of each hub must continue its tip and
// rise by one: otherwise NewCommit returns an error. It returns ErrFenced if the index has the
// commit seq already. The commit keeps records.
func NewCommit(
	seq, term uint64, records []Record, tip func(domain.HubID) (Tip, bool),
) (Commit, error) {
	if len(records) == 0 || len(records) > MaxRecords {
		return Commit{}, fmt.Errorf(
			"commit of %d records: must be 1 to %d", len(records), MaxRecords,
		)
	}
	c := Commit{Seq: seq, Term: term, Records: records}
	links := make(map[domain.HubID]int)
	for i := range records {
		r := &records[i]
		err := r.Validate()
		if err == nil && i > 0 && !r.Time.After(c.Time) {
			err = fmt.Errorf("time: must be after the time of the record before, %v", c.Time)
		}
		if err != nil {
			return Commit{}, fmt.Errorf("commit: record %d of %d: %w", i+1, len(records), err)
		}
		c.Time = r.Time
		n, known := links[r.Hub]
		if !known {
			n = len(c.Links)
			links[r.Hub] = n
			link, err := newLink(seq, r, tip)
			if err != nil {
				return Commit{}, fmt.Errorf("commit: record %d of %d: %w", i+1, len(records), err)
			}
			c.Links = append(c.Links, link)
		}
		if err := c.Links[n].add(r); err != nil {
			return Commit{}, fmt.Errorf("commit: record %d of %d: %w", i+1, len(records), err)
		}
	}
	return c, nil
}

// newLink returns the link of a hub whose first record of the commit seq is r.
func newLink(seq uint64, r *Record, tip func(domain.HubID) (Tip, bool)) (Link, error) {
	// Of a log that the index does not know, every record before counts as an event, so that no
	// later record has a lower count.
	link := Link{Hub: r.Hub, First: r.Seq, Last: r.Seq - 1}
	link.countFrom(r.Seq - 1)
	before, ok := tip(r.Hub)
	if !ok {
		return link, nil
	}
	link.countFrom(before.Events)
	if before.Commit >= seq {
		return link, fmt.Errorf("%w: %s has the commit %d", ErrFenced, r.Hub, before.Commit)
	}
	if r.Seq != before.Seq+1 {
		return link, fmt.Errorf(
			"sequence of %s: is %d, must be %d", r.Hub, r.Seq, before.Seq+1,
		)
	}
	link.Prev, link.anchor = before.Commit, before.anchor
	if before.number == 0 {
		link.anchor = before.Commit
	}
	link.number = before.number + 1 // from 255 to 0
	return link, nil
}

// errOrder reports records of a hub that do not rise by one.
var errOrder = errors.New("sequence: must be one above the hub's record before")

// countFrom sets how many events the hub's log has had before the commit, which has no records yet.
func (l *Link) countFrom(events uint64) { l.Events, l.eventsBefore = events, events }

// add adds the hub's next record, and sets its Events.
func (l *Link) add(r *Record) error {
	if r.Seq != l.Last+1 {
		return errOrder
	}
	if r.Kind.IsEvent() {
		l.Events++
	}
	l.Last, l.LastTime, r.Events = r.Seq, r.Time, l.Events
	switch r.Kind {
	case KindHubEvent:
		l.HubEvent = r.Seq
	case KindCloudEvent:
		l.CloudEvent = r.Seq
	case KindState:
		l.State = r.Seq
	case KindCommand:
	}
	return nil
}
