package feed

import (
	"context"
	"time"

	"hubcloud/domain"
	"hubcloud/streams/journal"
)

// Journal stores the records of hub logs and reports what is stored (journal.Journal).
type Journal interface {
	// Append stores records of one kind as Logs.Append does. Any end of the log will do for
	// journal.AnyEnd.
	Append(
		ctx context.Context, hub domain.HubID, expected uint64, records []journal.Record,
	) (last uint64, err error)
	// Subscribe makes the journal call f with each commit once, in the order of the journal, after
	// it is durable. It is called before any other method.
	Subscribe(f func(group int, commits []journal.Commit))
	// Sync returns once f has got everything that was stored in the hub's log before the call.
	Sync(ctx context.Context, hub domain.HubID) error
	// IsCommitting reports whether records of the hub's group, which this process began to store
	// before a time, may be stored without Sync and Tip knowing.
	IsCommitting(hub domain.HubID, before time.Time) bool
	// Tip returns the last record of the hub's log. It returns false for a hub that has no log.
	Tip(hub domain.HubID) (journal.Tip, bool)
	// Records reads records from the journal: from the sequence from up to to, and about as many
	// bytes as given. It returns journal.ErrGone if the journal no longer has the first one.
	Records(
		ctx context.Context, hub domain.HubID, from, to uint64, bytes int,
	) ([]journal.Record, error)
	// Oldest returns the sequence of the hub's oldest record that the journal has and that was
	// stored at since or later. It returns journal.ErrGone if there is none.
	Oldest(ctx context.Context, hub domain.HubID, since time.Time) (seq uint64, err error)
}

// received passes commits on to the tails of their logs and to the observer.
func (l *Logs) received(group int, commits []journal.Commit) {
	var changed []*tail
	var observed []ReceivedEvent
	observer := l.observer.Load()
	for i := range commits {
		records := commits[i].Records
		for n := 0; n < len(records); {
			hub := records[n].Hub
			end := n + 1
			for end < len(records) && records[end].Hub == hub {
				end++
			}
			s := l.shard(hub)
			from := len(observed)
			if observer != nil {
				observed = l.observe(*observer, observed, records[n:end])
			}
			if t := s.tail(hub); t != nil {
				more, err := t.receive(records[n:end], observed[from:])
				if err != nil {
					s.remove(t, err)
				} else if more {
					changed = append(changed, t)
				}
			}
			n = end
		}
	}
	if len(observed) > 0 {
		(*observer).Received(group, observed)
	}
	for _, t := range changed {
		t.Lock()
		t.Wake()
		t.Unlock()
	}
}

// storedRecord returns a record of the journal in the form that a hub's stream has it.
func storedRecord(r *journal.Record) stored {
	return stored{
		seq: r.Seq, data: r.Payload, event: r.Kind.IsEvent(), state: r.Kind == journal.KindState,
		at: r.Time, events: r.Events, number: r.Through, epoch: r.EpochID, org: r.OrgID,
		ownLog: r.OwnLog, connection: r.Connection,
	}
}
