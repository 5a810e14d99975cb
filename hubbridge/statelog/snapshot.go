package statelog

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"time"

	"hubcloud/domain"
	"hubcloud/projections/devicestate"
	"hubcloud/streams/feed"
	"hubcloud/streams/journal"
	"hubcloud/streams/jsapi"
)

const (
	// snapshotTries is how often a snapshot is completed that other records have overtaken.
	snapshotTries = 20
	// checkRetry is the pause after a log that could not be read or written.
	checkRetry = time.Minute
)

// check looks at the log of a hub that the replica has begun to serve: when the last snapshot was,
// and whether the hub must be asked.
func (k *Keeper) check(ctx context.Context, id domain.HubID, h *hub) {
	current, err := k.checkLog(ctx, id, h)
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		if domain.CodeOf(err) != domain.CodeNotFound {
			k.cfg.Logger.Warn("states of a hub log not read; trying again", "hub_id", id, "error", err)
		}
		k.mu.Lock()
		defer k.mu.Unlock()
		h.checkAt = k.cfg.Now().Add(checkRetry)
		return
	}
	if !current && k.cfg.Online(id) {
		k.request(id, k.cfg.Delay)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	h.checkAt = time.Time{}
	h.snapshotAt = h.snapshot.Add(k.cfg.SnapshotEvery + k.jitter(id))
}

// checkLog reports whether the log has a complete read since the last event of the cloud. It folds
// only the states, which is enough to know that.
func (k *Keeper) checkLog(
	ctx context.Context, id domain.HubID, h *hub,
) (current bool, err error) {
	state := new(devicestate.Hub)
	snapshot := false
	err = k.cfg.Logs.States(ctx, id, func(e feed.Entry) {
		if devicestate.IsSnapshot(e.Payload) {
			state, snapshot, h.snapshot = new(devicestate.Hub), true, e.Time
		}
		if snapshot {
			h.snapshotEnd = e.Seq
		}
		if !snapshot && h.snapshot.IsZero() {
			h.snapshot = e.Time // the log can be folded from its first read on
		}
		_ = state.Fold(stateEntry(&e)) // what cannot be decoded is not current
	})
	if err != nil {
		return false, err
	}
	if h.snapshot.IsZero() {
		h.snapshot = k.cfg.Now()
	}
	tip, _ := k.cfg.Journals.Tip(id)
	if tip.StateSeq > state.Seq {
		// The hub's stream does not have it yet. It is complete if it ends a read.
		entries, _, err := k.cfg.Logs.Entries(ctx, id, tip.StateSeq, tip.StateSeq)
		if err != nil {
			return false, err
		}
		for i := range entries {
			_ = state.Fold(stateEntry(&entries[i]))
		}
	}
	return state.Certain() && state.EpochID == h.epoch && tip.CloudEvent <= state.ReadAfter, nil
}

// jitter is a part of the time between snapshots that differs from hub to hub.
func (k *Keeper) jitter(id domain.HubID) time.Duration {
	return time.Duration(maphash.String(k.seed, string(id)) % uint64(k.cfg.SnapshotEvery/8+1))
}

// snapshot stores a snapshot if one is due.
func (k *Keeper) snapshot(ctx context.Context, id domain.HubID, h *hub) {
	now := k.cfg.Now()
	tip, ok := k.cfg.Journals.Tip(id)
	silent := !ok || tip.EventSeq() <= h.snapshotEnd && tip.StateSeq <= h.snapshotEnd
	if silent && now.Sub(h.snapshot) < k.cfg.Retention/2 {
		k.mu.Lock()
		defer k.mu.Unlock()
		h.snapshotAt = now.Add(k.cfg.SnapshotEvery / 4)
		return
	}
	outcome, next := outcomeStored, k.cfg.SnapshotEvery+k.jitter(id)
	stored, err := k.storeSnapshot(ctx, id)
	switch {
	case ctx.Err() != nil:
		return
	case err != nil:
		outcome, next = outcomeFailed, checkRetry
		k.cfg.Logger.Warn("snapshot not stored; trying again", "hub_id", id, "error", err)
	case stored == 0:
		outcome = outcomeNothing
	}
	k.metrics.snapshots.WithLabelValues(outcome).Inc()
	k.mu.Lock()
	defer k.mu.Unlock()
	h.snapshotAt = now.Add(next)
	if err == nil {
		h.snapshot, h.snapshotEnd = now, max(h.snapshotEnd, stored, tip.Seq)
	}
}

// storeSnapshot folds the log of a hub and stores the state, and asks the hub if the state is in
// doubt. It returns the sequence of the snapshot, 0 if nothing is known of the hub.
func (k *Keeper) storeSnapshot(ctx context.Context, id domain.HubID) (uint64, error) {
	access, ok := k.cfg.Hubs.Hub(id)
	if !ok {
		return 0, nil
	}
	last, err := k.cfg.Logs.LastSequence(ctx, id)
	if err != nil {
		return 0, err
	}
	state, err := fold(ctx, k.cfg.Logs, id, last, time.Time{})
	if err != nil {
		return 0, err
	}
	for try := 1; ; try++ {
		tip, _ := k.cfg.Journals.Tip(id)
		if err := state.extend(ctx, k.cfg.Logs, id, last+1, tip.Seq, time.Time{}); err != nil {
			return 0, err
		}
		last = max(last, tip.Seq)
		if state.EpochID != access.Epoch.ID {
			return 0, nil // nothing is known of the present epoch
		}
		seq, err := k.appendSnapshot(ctx, id, access, &state, last)
		if !errors.Is(err, jsapi.ErrConflict) || try == snapshotTries {
			if err == nil && inDoubt(state.Hub) && k.cfg.Online(id) {
				k.request(id, k.cfg.Delay)
			}
			return seq, err
		}
	}
}

// inDoubt reports whether the hub must be asked to know the state of all its devices.
func inDoubt(h *devicestate.Hub) bool {
	doubt := !h.Certain()
	for _, d := range h.Devices {
		doubt = doubt || !d.Certain()
	}
	return doubt
}

// appendSnapshot stores a snapshot on condition that nothing follows the last record that was
// folded.
func (k *Keeper) appendSnapshot(
	ctx context.Context, id domain.HubID, access domain.HubAccess, state *folded, last uint64,
) (uint64, error) {
	payloads, err := state.MarshalSnapshot()
	if err != nil {
		return 0, fmt.Errorf("snapshot of %d devices: %w", len(state.Devices), err)
	}
	records := make([]journal.Record, len(payloads))
	for i, payload := range payloads {
		records[i] = journal.Record{
			Kind: journal.KindState, EpochID: access.Epoch.ID, OrgID: access.OrgID,
			Payload: payload,
		}
	}
	return k.cfg.Logs.Append(ctx, id, last, records)
}
