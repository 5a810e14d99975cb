package ingest

import (
	"context"
	"errors"
	"fmt"

	"hubcloud/domain"
	"hubcloud/hubbridge/presence"
	"hubcloud/streams/feed"
)

// logState is the state of a hub's event log and of the hub's own log.
type logState struct {
	// epoch is the id of the log's epoch.
	epoch domain.EpochID
	// org is the hub's organization; empty if it has none. Then no event is stored.
	org string
	// lastEventSeq is the sequence of the stream's last event, of any epoch; 0 when there is none.
	// Every append expects it.
	lastEventSeq uint64
	// ownLog is the hub's identity of its own log; empty before the first. Every number up to
	// through is stored or skipped.
	ownLog  string
	through uint64
	// accountedSeq is the sequence in the stream up to which ownLog and through account for every
	// event.
	accountedSeq uint64
	// streamLastSeq is the stream's last sequence, also of an expired event. It is set only while
	// unaccounted is above 0.
	streamLastSeq uint64
	// unaccounted is how many numbers after through may have been stored and have expired since:
	// the sequences from accountedSeq to streamLastSeq (see sources.resolve). It is 0 while the
	// stream has an event left.
	unaccounted uint64
	// retired holds the hub's former logs, the last maxRetired, oldest first.
	retired []string
	// released reports whether an organization has released the hub and the hub has sent no hello
	// since. The events that the hub holds belong to that organization.
	released bool
	// logReset is the reason of the hub.log_reset that the epoch must still begin with; "" if it is
	// stored, or if the epoch has none.
	logReset domain.LogResetReason
}

// owned reports whether an organization has the hub.
func (l *logState) owned() bool { return l.org != "" }

// errViewBehind reports that this replica's view of the directory is older than the directory or
// than a checkpoint.
var errViewBehind = errors.New("the view of the directory is behind")

// ensureLoaded loads the state of the hub's log unless s holds the state of the current epoch.
func (s *hubState) ensureLoaded(ctx context.Context) error {
	access, released, err := s.access(ctx)
	if err != nil || s.loaded && s.log.epoch == access.Epoch.ID {
		return err
	}
	return s.load(ctx, access, released)
}

// access returns the owner and epoch of the hub. For a hub without an organization it returns the
// zero value, and the log of the organization that released the hub last, if any. Only the
// directory itself can answer that a hub has no organization. With a stale view, the events of a
// hub that was just added would be acknowledged and not stored.
func (s *hubState) access(ctx context.Context) (domain.HubAccess, *domain.ReleasedLog, error) {
	if access, ok := s.shard.cfg.Ownership.Hub(s.hub); ok {
		return access, nil, nil
	}
	state, _, err := s.shard.cfg.Directory.Hub(ctx, s.hub)
	if err != nil {
		return domain.HubAccess{}, nil, err
	}
	if state.OrgID == "" {
		return domain.HubAccess{}, state.Released, nil
	}
	return domain.HubAccess{OrgID: state.OrgID, Epoch: state.Epoch}, nil, nil
}

// load reads the stored state of the hub: checkpoint, presence, and the last events of its log.
func (s *hubState) load(
	ctx context.Context, access domain.HubAccess, released *domain.ReleasedLog,
) (err error) {
	cfg := &s.shard.cfg
	if err := s.readBuckets(ctx); err != nil {
		return err
	}
	if access.Epoch.ID.IsZero() && released == nil {
		if !s.checkpoint.Epoch.IsZero() {
			return fmt.Errorf(
				"%w: the checkpoint of %s is of a hub with an organization", errViewBehind, s.hub,
			)
		}
		s.log = logState{
			ownLog:  s.checkpoint.Log,
			through: s.checkpoint.Through,
			retired: s.checkpoint.Retired,
		}
		s.loaded = true
		return nil
	}
	src := sources{access: access, checkpoint: s.checkpoint}
	if src.lastEvents, err = cfg.Logs.LastEvents(ctx, s.hub); err != nil {
		return err
	}
	if access.Epoch.ID.IsZero() {
		s.log = src.resolveReleased(released)
		s.loaded = true
		return nil
	}
	if src.needsDirectory() {
		state, _, err := cfg.Directory.Hub(ctx, s.hub)
		if err != nil {
			return err
		}
		if state.Epoch.ID != access.Epoch.ID {
			return fmt.Errorf("%w: hub %s", errViewBehind, s.hub)
		}
		src.resetLog, src.resetThrough = state.OwnLog, state.OwnLogThrough
		src.released = state.Released
	}
	if len(src.inEpoch()) == 0 {
		if src.lastSequence, err = cfg.Logs.LastSequence(ctx, s.hub); err != nil {
			return err
		}
	}
	s.log = src.resolve()
	s.restorePresence(src.lastEvents, access)
	s.loaded = true
	return nil
}

// readBuckets reads the hub's checkpoint and presence, unless s holds them.
func (s *hubState) readBuckets(ctx context.Context) error {
	cfg := &s.shard.cfg
	if !s.checkpointRead {
		s.checkpoint = checkpoint{}
		entry, err := cfg.Checkpoints.GetJSON(ctx, string(s.hub), &s.checkpoint)
		if err != nil {
			return err
		}
		s.checkpointRevision, s.checkpointRead = entry.Revision, true
	}
	if !s.presenceRead {
		p := domain.Presence{}
		entry, err := cfg.Presence.GetJSON(ctx, string(s.hub), &p)
		if err != nil {
			return err
		}
		s.presence, s.presenceRevision, s.presenceRead = p, entry.Revision, true
	}
	return nil
}

// restorePresence restores the hub's connection from the last transition in its log. The log is
// written before the bucket: a log that is newer shows that a process stopped in between, and then
// the bucket is written again. Transitions in an epoch of another organization are older than the
// bucket.
func (s *hubState) restorePresence(lastEvents []feed.LastEvent, access domain.HubAccess) {
	for _, e := range lastEvents {
		if !e.FromCloud || e.EpochID != access.Epoch.At(e.Seq) || e.Connection == "" ||
			e.Connection == presence.MarshalConnection(s.presence) {
			continue
		}
		s.presence = presence.RestoreConnection(s.presence, e.Connection)
		s.presence.HubID = s.hub
		s.presenceDirty = true
	}
}
