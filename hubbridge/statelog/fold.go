package statelog

import (
	"context"
	"time"

	"hubcloud/domain"
	"hubcloud/projections/devicestate"
	"hubcloud/streams/feed"
)

// folded is the state of a hub's devices, folded from the hub's log.
type folded struct {
	*devicestate.Hub
	// known is the time of the first state that the log has; zero without one.
	known time.Time
}

// fold folds the log of a hub up to a sequence, which must have been stored: from the last snapshot
// on that the log has. With an instant that is not zero, it folds only what was stored up to it.
func fold(
	ctx context.Context, logs Logs, hub domain.HubID, to uint64, until time.Time,
) (folded, error) {
	f := folded{Hub: new(devicestate.Hub)}
	from := uint64(1)
	err := logs.States(ctx, hub, func(e feed.Entry) {
		if f.known.IsZero() {
			f.known = e.Time
		}
		late := e.Seq > to || !until.IsZero() && e.Time.After(until)
		if !late && devicestate.IsSnapshot(e.Payload) {
			from = e.Seq
		}
	})
	if err != nil {
		return f, err
	}
	return f, f.extend(ctx, logs, hub, from, to, until)
}

// extend folds the entries with the sequences from to to.
func (f *folded) extend(
	ctx context.Context, logs Logs, hub domain.HubID, from, to uint64, until time.Time,
) error {
	for from <= to {
		entries, through, err := logs.Entries(ctx, hub, from, to)
		if err != nil {
			return err
		}
		for i := range entries {
			if !until.IsZero() && entries[i].Time.After(until) {
				return nil
			}
			if entries[i].State && f.known.IsZero() {
				f.known = entries[i].Time // the hub's stream does not have it yet
			}
			// What cannot be decoded puts the state in doubt.
			_ = f.Fold(stateEntry(&entries[i]))
		}
		from = through + 1
	}
	return nil
}

// stateEntry returns an entry of a log in the form in which it is folded.
func stateEntry(e *feed.Entry) devicestate.Entry {
	if e.State {
		return devicestate.Entry{Seq: e.Seq, Time: e.Time, State: e.Payload}
	}
	return devicestate.Entry{
		Seq: e.Seq, Time: e.Time, Number: e.Number, EpochID: e.EpochID, Event: e.Payload,
	}
}
