package domain

import "fmt"

// ReleasedLog is a hub's event log at its release from an organization. The fields are as in
// HubState.
type ReleasedLog struct {
	OrgID         string
	Epoch         Epoch
	OwnLog        string
	OwnLogThrough uint64
}

// BeginEpoch is the command to begin a new epoch of the event log of a hub that was reset.
type BeginEpoch struct {
	// OwnLog is the hub's name for its new log, and Through the number up to which no event of it
	// is expected.
	OwnLog  string
	Through uint64
	// After is the last sequence of the hub's stream: events up to After belong to earlier epochs.
	After uint64
}

// DecideBeginEpoch begins the epoch id of the event log of a hub that was reset. It returns no
// event if the current epoch is c.OwnLog's, so a bridge may repeat the command. It returns
// not_found for a hub that no organization has, and rate_limited for a hub over the limit.
func DecideBeginEpoch(
	s HubState, o Origin, c BeginEpoch, id EpochID, limit HubLimit,
) ([]Event, error) {
	if s.OrgID == "" {
		return nil, ErrHubNotFound()
	}
	if c.OwnLog == "" {
		return nil, fmt.Errorf("hub %s: begin epoch: the hub's log has no name", s.ID)
	}
	if s.OwnLog == c.OwnLog {
		return nil, nil
	}
	if id.IsZero() || id == s.Epoch.ID {
		return nil, fmt.Errorf(
			"hub %s: begin epoch: epoch %s cannot follow %s", s.ID, id, s.Epoch.ID,
		)
	}
	if c.After < s.Epoch.After {
		return nil, fmt.Errorf(
			"hub %s: begin epoch: sequence %d is before sequence %d, where the current epoch begins",
			s.ID, c.After, s.Epoch.After,
		)
	}
	if wait := limit.wait(s.LogTimes, o.At); wait > 0 {
		return nil, RateLimited(wait, "this hub was reset too often recently")
	}
	return []Event{Record(o, HubLogBegun{
		HubID: s.ID, OrgID: s.OrgID, EpochID: id, OwnLog: c.OwnLog, Through: c.Through,
		After: c.After,
	})}, nil
}

// DecideRestoreLog begins the epoch id of the hub's event log after a restore that brought the
// hub's stream back up to the sequence kept; 0 when the backup had none of it. It returns not_found
// for a hub that no organization has.
func DecideRestoreLog(s HubState, o Origin, id EpochID, kept uint64) ([]Event, error) {
	if s.OrgID == "" {
		return nil, ErrHubNotFound()
	}
	if _, used := s.Epoch.Former.Find(id); used || id.IsZero() || id == s.Epoch.ID {
		return nil, fmt.Errorf(
			"hub %s: restore log: epoch %s cannot follow %s", s.ID, id, s.Epoch.ID,
		)
	}
	restored := s.Epoch.Restored(id, kept)
	return []Event{Record(o, HubLogRestored{
		HubID: s.ID, OrgID: s.OrgID, EpochID: id, After: restored.After, Former: restored.Former,
	})}, nil
}
