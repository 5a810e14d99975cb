package ingest

import (
	"context"
	"errors"
	"time"

	"hubcloud/domain"
	"hubcloud/hubbridge/codec"
	"hubcloud/hubbridge/presence"
	"hubcloud/streams"
	"hubcloud/streams/journal"
	"hubcloud/streams/shares"
)

// hubState is the state of one hub in its shard. The shard's mutex guards inbox, and the worker
// that handles the hub owns the other fields.
type hubState struct {
	shard *Shard
	hub   domain.HubID
	inbox inbox
	// turn is whose turn it was when a worker took the hub. The shard's mutex guards it.
	turn shares.Spender
	// pause is the length of the pause after the last error.
	pause time.Duration

	// loaded reports whether log is the stored state, and dirty whether the checkpoint must be
	// written.
	loaded bool
	dirty  bool
	log    logState

	// checkpoint and presence are the values of the buckets at their revisions, once they are read.
	// While presenceDirty is set, presence is newer than its bucket.
	checkpoint         checkpoint
	checkpointRevision uint64
	checkpointRead     bool
	presence           domain.Presence
	presenceRevision   uint64
	presenceRead       bool
	presenceDirty      bool
	// pending holds the connections that wait for the end of the recorded one.
	pending []presence.Pending
	stats   connectionStats
	// helloPending reports whether a hello has no ack yet because the broker has not reported the
	// hub's connection.
	helloPending bool
	// noResetBefore is when the hub may be reset again, and warned when the hub was last logged as
	// limited.
	noResetBefore time.Time
	warned        time.Time
	progress      hubProgress
	// endChecked is when the end of the log was last compared with log (checkEnd).
	endChecked time.Time
	// unheardUntil is when a hub that was beyond its budget is listened to again.
	unheardUntil time.Time
	// wait is the pause before the hub's next turn (Budget.pace).
	wait time.Duration
}

func (s *hubState) now() time.Time { return s.shard.cfg.Now().UTC().Truncate(time.Microsecond) }

// handle handles an item and returns the number of the hub's messages that were handled with it.
// After an error the item may be handled again.
func (s *hubState) handle(
	ctx context.Context, decoder *codec.EventsDecoder, it item,
) (messages int, err error) {
	switch it.kind {
	case kindHello:
		return 1, s.handleHello(ctx, it.data)
	case kindEvents:
		return s.handleEvents(ctx, decoder, it.data)
	case kindObservation:
		return 0, s.handleObservation(ctx, *it.observation)
	case kindFlush:
		return 0, s.flush(ctx)
	case kindRepeatAck:
		return 0, s.repeatAck(ctx)
	}
	return 0, nil
}

// withState loads the hub's stored state, if necessary, completes the beginning of the epoch, and
// calls act. When act returns errStale, withState loads the state again and repeats act, up to
// maxTries times in all. act must change s only after the change is stored.
func (s *hubState) withState(ctx context.Context, act func() error) error {
	for try := 1; ; try++ {
		err := s.requireServing()
		if err == nil {
			err = s.ensureLoaded(ctx)
		}
		if err == nil {
			err = s.recordLogReset(ctx)
		}
		if err == nil {
			err = act()
		}
		if !errors.Is(err, errStale) || try == maxTries {
			return err
		}
	}
}

// errLeaseNotHeld reports that the shard's lease is not held: another replica may serve its hubs.
var errLeaseNotHeld = errors.New("the shard's lease is not held")

// requireServing returns errLeaseNotHeld if another replica may serve the hub, unless only because
// the lease cannot be renewed for the moment. It is called before what is safe in that case: appends,
// since the journal rejects those of a former holder, and what follows from a stored one or is true
// whoever writes it, on condition of the revision before.
func (s *hubState) requireServing() error {
	if !s.shard.cfg.Serving() {
		return errLeaseNotHeld
	}
	return nil
}

// requireLease returns errLeaseNotHeld unless the lease is held. It must be called right before
// each other write. The process may still be suspended between the call and the write; then the
// write names a revision or sequence that the next holder has replaced, and fails.
func (s *hubState) requireLease() error {
	if !s.shard.cfg.LeaseHeld() {
		return errLeaseNotHeld
	}
	return nil
}

// append appends records to the hub's event log as one atomic batch. It fails with errStale if
// another process has appended since the state was loaded.
func (s *hubState) append(ctx context.Context, records []journal.Record) error {
	if err := s.requireServing(); err != nil {
		return err
	}
	last, err := s.shard.cfg.Logs.Append(ctx, s.hub, s.log.lastEventSeq, records)
	if err != nil {
		return s.writeFailed(err)
	}
	s.log.lastEventSeq = last
	if final := &records[len(records)-1]; final.OwnLog != "" {
		s.log.through, s.log.accountedSeq, s.log.unaccounted = final.Through, last, 0
		s.dirty = true
	}
	return nil
}

// deviceRecord returns the record of the hub's event with a number.
func (s *hubState) deviceRecord(payload []byte, number uint64) journal.Record {
	return journal.Record{
		Kind:    journal.KindHubEvent,
		Payload: payload,
		EpochID: s.log.epoch,
		OrgID:   s.log.org,
		OwnLog:  s.log.ownLog,
		Through: number,
	}
}

// skipRecord returns a record of hub.events_skipped for the numbers from from to to. flaw is the
// reason of a malformed event; "" for events that the hub no longer has.
func (s *hubState) skipRecord(from, to uint64, flaw codec.Flaw) journal.Record {
	data := codec.AppendSkipData(nil, from, to, flaw)
	r := s.cloudRecord(domain.EventHubEventsSkipped, s.now(), data, s.presence)
	r.OwnLog, r.Through = s.log.ownLog, to
	return r
}

// cloudRecord returns the record of an event of the cloud itself, with the cloud's time. p is the
// hub's presence after the event.
func (s *hubState) cloudRecord(
	typ string, at time.Time, data []byte, p domain.Presence,
) journal.Record {
	r := journal.Record{
		Kind: journal.KindCloudEvent, Payload: codec.AppendCloudEvent(nil, typ, s.hub, at, data),
		EpochID: s.log.epoch, OrgID: s.log.org,
		Connection: presence.MarshalConnection(p),
	}
	// A record with the number accounts for every event before it. Events of an unaccounted range,
	// and those that a released hub still holds, are not accounted for yet.
	if s.log.unaccounted == 0 && !s.log.released {
		r.OwnLog, r.Through = s.log.ownLog, s.log.through
	}
	return r
}

// ack acknowledges the hub's log through a number, if this replica serves the hub. A hub without an
// ack sends again. What an ack says remains true, and a hub ignores one that is lower than another on
// the same connection.
func (s *hubState) ack(ownLog string, through uint64) {
	cfg := &s.shard.cfg
	if !cfg.Serving() {
		cfg.Metrics.withheld.Inc()
		return
	}
	if err := cfg.Acks.Publish(
		streams.AckSubject(s.hub), codec.AppendAck(nil, ownLog, through),
	); err != nil {
		cfg.Logger.Debug("ack not sent", "hub_id", s.hub, "error", err)
		cfg.Metrics.withheld.Inc()
		return
	}
	cfg.Metrics.acks.Inc()
}
