package ingest

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"hubcloud/domain"
	"hubcloud/hubbridge/presence"
	"hubcloud/streams/hublog"
)

// logState is what is known of a hub's log.
type logState struct {
	// epoch is the id of the log's epoch.
	epoch domain.EpochID
	// org is the hub's organization; empty if it has none. Then no event is stored.
	org string
	// last is the sequence of the stream's last event, of any epoch: what every append
	// expects. 0 when there is none.
	last uint64
	// name is the hub's own name of its log, empty while none was heard of; through is the number
	// up to which it is settled.
	name    string
	through uint64
	// seq is the sequence in the stream up to which all this takes everything into account.
	seq uint64
	// horizon is the stream's last sequence when that is beyond seq while no event is left, and
	// slack their distance: see resolve.
	horizon uint64
	slack   uint64
	retired []string
	// foreign says that the hub was taken away from an organization and has said no hello since:
	// what it holds up to its newest event is of that organization, and nobody else's.
	foreign bool
}

// owned reports whether an organization has the hub.
func (l *logState) owned() bool { return l.org != "" }

// errBehind says that this replica's view of the directory is older than what the directory or the
// ledger says.
var errBehind = errors.New("the view of the directory is behind")

// current sees to it that the session knows the hub's log as the hub's owner has it now.
func (s *session) current(ctx context.Context) error {
	access, released, err := s.access(ctx)
	if err != nil || s.loaded && s.log.epoch == access.Epoch.ID {
		return err
	}
	return s.load(ctx, access, released)
}

// access says who has the hub; the zero value for nobody, with the log that was taken away from
// whoever had it last. "Nobody" is taken from the directory alone: a view that is behind would have
// events acknowledged and not kept that belong to somebody already.
func (s *session) access(ctx context.Context) (domain.HubAccess, *domain.ReleasedLog, error) {
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

// load reads what is stored about the hub.
func (s *session) load(
	ctx context.Context, access domain.HubAccess, released *domain.ReleasedLog,
) (err error) {
	cfg := &s.shard.cfg
	if !s.ledgerRead {
		s.ledger = ledger{}
		entry, err := cfg.Ledger.GetJSON(ctx, string(s.hub), &s.ledger)
		if err != nil {
			return err
		}
		s.ledgerRevision, s.ledgerRead = entry.Revision, true
	}
	if !s.presenceRead {
		p := domain.Presence{}
		entry, err := cfg.Presence.GetJSON(ctx, string(s.hub), &p)
		if err != nil {
			return err
		}
		s.presence, s.presenceRevision, s.presenceRead = p, entry.Revision, true
	}
	if access.Epoch.ID.IsZero() && released == nil {
		if !s.ledger.Epoch.IsZero() {
			return fmt.Errorf(
				"%w: the ledger of %s is of a hub that somebody has added", errBehind, s.hub,
			)
		}
		s.log = logState{name: s.ledger.Log, through: s.ledger.Through, retired: s.ledger.Retired}
		s.loaded = true
		return nil
	}
	evidence := evidence{access: access, ledger: s.ledger}
	if evidence.marks, err = cfg.Logs.LastEvents(ctx, s.hub); err != nil {
		return err
	}
	if access.Epoch.ID.IsZero() {
		s.log = evidence.ofReleased(released)
		s.loaded = true
		return nil
	}
	if evidence.needsDirectory() {
		state, _, err := cfg.Directory.Hub(ctx, s.hub)
		if err != nil {
			return err
		}
		if state.Epoch.ID != access.Epoch.ID {
			return fmt.Errorf("%w: hub %s", errBehind, s.hub)
		}
		evidence.begun, evidence.begunThrough, evidence.released = state.OwnLog, state.OwnLogThrough, state.Released
	}
	if len(evidence.speaking()) == 0 {
		if evidence.lastSequence, err = cfg.Logs.LastSequence(ctx, s.hub); err != nil {
			return err
		}
	}
	s.log = evidence.resolve()
	s.recall(evidence.marks, access)
	s.loaded = true
	return nil
}

// recall takes from the last of the cloud's own events what was told last about the hub's
// connection. It is at least as new as the bucket, which is written after it; when it is newer, a
// process has stopped in between, and the bucket is put right. What was told an organization that
// has the hub no more is older than the bucket.
func (s *session) recall(marks []hublog.LastEvent, access domain.HubAccess) {
	for _, m := range marks {
		if !m.Link || m.EpochID != access.Epoch.At(m.Seq) || m.Connection == "" ||
			m.Connection == presence.MarshalConnection(s.presence) {
			continue
		}
		s.presence = presence.RestoreConnection(s.presence, m.Connection)
		s.presence.HubID = s.hub
		s.presenceDirty = true
	}
}

// evidence is everything that says how far a hub's log has come.
type evidence struct {
	access domain.HubAccess
	marks  []hublog.LastEvent
	ledger ledger
	// begun is the log that the hub began when it was last reset, if it was, and begunThrough the
	// number before its first.
	begun        string
	begunThrough uint64
	// released is the log that was taken away from an organization before this one had the hub, if
	// nothing else speaks of this one's.
	released *domain.ReleasedLog
	// lastSequence is the stream's, if no record speaks of the hub's log any more.
	lastSequence uint64
}

// speaking gives the marks that speak of the epoch.
func (e *evidence) speaking() []hublog.LastEvent {
	var speaking []hublog.LastEvent
	for _, m := range e.marks {
		if e.access.Epoch.Has(m.Seq, m.EpochID) && m.OwnLog != "" {
			speaking = append(speaking, m)
		}
	}
	return speaking
}

// fromLedger says whether the ledger speaks of the log, and of which sequence in its stream: of a
// log that was restored, none that was not.
func (e *evidence) fromLedger() (seq uint64, ok bool) {
	if e.ledger.Log == "" {
		return 0, false
	}
	if e.ledger.Epoch == e.access.Epoch.ID {
		return e.ledger.StreamSeq, true
	}
	former, ok := e.access.Epoch.Former.Find(e.ledger.Epoch)
	return min(e.ledger.StreamSeq, former.Through), ok
}

// needsDirectory says that neither the log nor the ledger speaks of the epoch.
func (e *evidence) needsDirectory() bool {
	_, told := e.fromLedger()
	return len(e.speaking()) == 0 && !told
}

// resolve decides. Of what speaks of the epoch, the one that speaks of the highest sequence
// counts: the last record, the ledger, the directory's word about the reset with which it began.
// When none does, and the hub was not reset since it was added, the ledger from before it was added
// counts: what was acknowledged then is no gap.
//
// After a restore from a backup the log has another epoch; records of before it speak of the log
// still, under its former one. What the hub sent after the backup, had acknowledged and holds no
// more is then a gap in what its next hello offers.
//
// The ledger is written some time after the log. A process that is killed in between, and stays
// down until retention has emptied the log, leaves a ledger that knows less than was stored. The
// stream shows that, since its last sequence is kept for ever: it is then beyond the one that the
// ledger speaks of while no event is left, and their distance (commands count too) bounds how many
// numbers may have been settled that nobody remembers. A hub that then holds only events from
// further on has lost none of them as far as anybody can tell, so a gap of at most that many
// numbers in its next hello is none. Readers lose nothing by it: their cursors are older than the
// retention and answer 410.
func (e *evidence) resolve() logState {
	l := logState{epoch: e.access.Epoch.ID, org: e.access.OrgID}
	for _, m := range e.marks {
		l.last = max(l.last, m.Seq)
	}
	told, ok := e.fromLedger()
	switch {
	case ok:
		l.name, l.through, l.seq = e.ledger.Log, e.ledger.Through, told
	case e.begun != "":
		l.name, l.through, l.seq = e.begun, e.begunThrough, e.access.Epoch.After
	case e.ledger.Epoch.IsZero():
		l.name, l.through, l.seq = e.ledger.Log, e.ledger.Through, e.access.Epoch.After
	default:
		l.seq = e.access.Epoch.After
	}
	speaking := e.speaking()
	for _, m := range speaking {
		if m.Seq > l.seq {
			l.name, l.through, l.seq = m.OwnLog, m.Through, m.Seq
		}
	}
	if len(speaking) == 0 && e.lastSequence > l.seq && l.name != "" {
		l.horizon, l.slack = e.lastSequence, e.lastSequence-l.seq
	}
	l.retired = retire(e.ledger.Retired, e.ledger.Log, l.name)
	if e.released != nil && e.begun == "" && len(speaking) == 0 && !ok {
		former := e.ofReleased(e.released)
		l.name, l.through, l.retired, l.foreign = former.name, former.through, former.retired, former.foreign
		l.horizon, l.slack = 0, 0
	}
	return l
}

// ofReleased returns how far the hub's own log had come when it was taken away from an
// organization, or later, while nobody had the hub. Nothing of it up to there is anybody else's.
func (e *evidence) ofReleased(r *domain.ReleasedLog) logState {
	former := evidence{
		access: domain.HubAccess{OrgID: r.OrgID, Epoch: r.Epoch},
		marks:  e.marks, ledger: e.ledger, begun: r.OwnLog, begunThrough: r.OwnLogThrough,
	}
	then := former.resolve()
	l := logState{
		last:    then.last,
		name:    then.name,
		through: then.through,
		retired: then.retired,
		foreign: true,
	}
	newer := e.ledger.Log == then.name && e.ledger.Through >= then.through ||
		slices.Contains(e.ledger.Retired, then.name)
	if e.ledger.Epoch.IsZero() && (newer || then.name == "") {
		l.name, l.through, l.retired, l.foreign = e.ledger.Log, e.ledger.Through, e.ledger.Retired, false
	}
	return l
}
