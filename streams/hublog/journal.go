package hublog

import (
	"context"

	"hubcloud/domain"
	"hubcloud/streams/journal"
)

// Journal stores the records of hub logs and reports what is stored (logwriter.Router).
type Journal interface {
	// Append and AppendCommand store records as the methods of Logs with these names do.
	Append(
		ctx context.Context, hub domain.HubID, expected uint64, records []journal.Record,
	) (last uint64, err error)
	AppendCommand(
		ctx context.Context, hub domain.HubID, payload []byte,
	) (sequence uint64, err error)
	// Subscribe makes the journal call f with each commit once, in the order of the journal, after
	// it is durable. It is called before any other method.
	Subscribe(f func(group int, commits []journal.Commit))
	// Sync returns once f has got everything that was stored in the hub's log before the call.
	Sync(ctx context.Context, hub domain.HubID) error
	// Tip returns the last record of the hub's log. It returns false if no record of the hub was
	// ever journaled: then the hub's stream, if there is one, is complete.
	Tip(hub domain.HubID) (journal.Tip, bool)
	// Records reads records from the journal: from the sequence from up to to, and about as many
	// bytes as given. It returns journal.ErrGone if the journal no longer has the first one.
	Records(
		ctx context.Context, hub domain.HubID, from, to uint64, bytes int,
	) ([]journal.Record, error)
	// Oldest returns the sequence of the oldest record of the hub that the journal has. It returns
	// journal.ErrGone if the journal has none.
	Oldest(ctx context.Context, hub domain.HubID) (seq uint64, err error)
	// AwaitView returns once the hub's stream has its log up to a sequence.
	AwaitView(ctx context.Context, hub domain.HubID, seq uint64) error
}

// received passes commits on to the tails of their logs.
func (l *Logs) received(_ int, commits []journal.Commit) {
	var changed []*tail
	for i := range commits {
		records := commits[i].Records
		for n := 0; n < len(records); {
			hub := records[n].Hub
			end := n + 1
			for end < len(records) && records[end].Hub == hub {
				end++
			}
			s := l.shard(hub)
			if t := s.tail(hub); t != nil {
				more, err := t.receive(records[n:end])
				if err != nil {
					s.remove(t, err)
				} else if more {
					changed = append(changed, t)
				}
			}
			n = end
		}
	}
	for _, t := range changed {
		t.wake()
	}
}

// storedRecord returns a record of the journal in the form that a hub's stream has it.
func storedRecord(r *journal.Record) stored {
	return stored{
		seq: r.Seq, data: r.Payload, event: r.Kind != journal.KindCommand, at: r.Time,
		epoch: r.EpochID, org: r.OrgID,
	}
}
