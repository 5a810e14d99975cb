package journal

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"hubcloud/domain"
)

// Index is the end of every hub's log, as far as the journal of one group has it. A process keeps
// it in memory, about 120 bytes a hub, and applies every commit to it. It is safe for concurrent
// use.
//
// A tip stays after its records have expired, so that the numbering of a hub that is silent for
// long goes on.
type Index struct {
	group int

	mu sync.RWMutex
	// position is the sequence of the last commit that was applied or skipped, and id the id of
	// that commit; zero for one that was skipped.
	position uint64
	id       commitID
	tips     map[domain.HubID]tip
	// saved is the position of the last snapshot.
	saved uint64
}

// tip is a Tip with a smaller time.
type tip struct {
	seq, hubEvent, cloudEvent, state, events, commit, anchor uint64
	nanos                                                    int64
	number                                                   uint8
}

// Tip is the end of a hub's log.
type Tip struct {
	// Seq is the sequence of the last record in the hub's log.
	Seq uint64
	// HubEvent and CloudEvent are the sequences of the last event of the hub and of the cloud, and
	// StateSeq is the sequence of the last record of a state; 0 if there was none in the chain of
	// commits. All may have expired.
	HubEvent, CloudEvent, StateSeq uint64
	// Events is how many events the log has had.
	Events uint64
	// Time is the time of the last record.
	Time time.Time
	// Commit is the journal sequence of the last commit that has records of the hub. It may have
	// expired.
	Commit uint64
	// anchor and number are of the hub's link in that commit.
	anchor uint64
	number uint8
}

// EventSeq returns the sequence of the last event; 0 if there was none in the chain of commits.
func (t Tip) EventSeq() uint64 { return max(t.HubEvent, t.CloudEvent) }

// NewIndex returns the index of a group's journal without any commit.
func NewIndex(group int) *Index {
	return &Index{group: group, tips: map[domain.HubID]tip{}}
}

// Tip returns the end of a hub's log; false if the index knows nothing of the hub.
func (x *Index) Tip(hub domain.HubID) (Tip, bool) {
	x.mu.RLock()
	t, ok := x.tips[hub]
	x.mu.RUnlock()
	if !ok {
		return Tip{}, false
	}
	return Tip{
		Seq: t.seq, HubEvent: t.hubEvent, CloudEvent: t.cloudEvent, StateSeq: t.state,
		Events: t.events, Time: utc(t.nanos),
		Commit: t.commit, anchor: t.anchor, number: t.number,
	}, true
}

// Position returns the sequence of the last commit that was applied or skipped. A follower for the
// index begins behind it.
func (x *Index) Position() uint64 {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.position
}

// Apply applies commits in the order of their sequences. Those that were applied before are
// ignored, so a writer may apply its commit before a follower delivers the same one. Apply returns
// an error, and applies nothing further, if a commit is missing before one of them.
func (x *Index) Apply(commits ...Commit) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	for i := range commits {
		c := &commits[i]
		if c.Seq <= x.position {
			continue
		}
		if c.Seq != x.position+1 {
			return groupError(x.group, fmt.Errorf(
				"index: commit %d cannot follow commit %d", c.Seq, x.position,
			))
		}
		x.position, x.id = c.Seq, c.id
		for n := range c.Links {
			x.apply(c.Seq, &c.Links[n])
		}
	}
	return nil
}

// apply must be called with x.mu held.
func (x *Index) apply(seq uint64, link *Link) {
	before := x.tips[link.Hub]
	// link's is a part of a longer string, and an assignment replaces the key as well.
	hub := domain.HubID(strings.Clone(string(link.Hub)))
	x.tips[hub] = tip{
		seq: link.Last, hubEvent: cmp.Or(link.HubEvent, before.hubEvent),
		cloudEvent: cmp.Or(link.CloudEvent, before.cloudEvent),
		state:      cmp.Or(link.State, before.state), events: link.Events, commit: seq,
		anchor: link.anchor,
		nanos:  link.LastTime.UnixNano(), number: link.number,
	}
}

// Skip records that the commits up to a sequence have expired or are lost. The index keeps all
// tips. The tip of a hub with records in these commits is right again with the hub's next record.
// Without one, the hub's stream is longer than its log: Lease.Begin finds that.
func (x *Index) Skip(to uint64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if to > x.position {
		x.position, x.id = to, commitID{}
	}
}

// Tips returns the ends of all logs that the index knows at the call, in no order.
func (x *Index) Tips() iter.Seq2[domain.HubID, Tip] {
	x.mu.RLock()
	hubs := slices.Collect(maps.Keys(x.tips))
	x.mu.RUnlock()
	return func(yield func(domain.HubID, Tip) bool) {
		for _, hub := range hubs {
			if tip, ok := x.Tip(hub); ok && !yield(hub, tip) {
				return
			}
		}
	}
}
