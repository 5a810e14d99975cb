package ingest

import (
	"context"
	"errors"
	"strconv"
	"time"

	"golang.org/x/time/rate"

	"hubcloud/domain"
	"hubcloud/hubbridge/codec"
	"hubcloud/hubbridge/presence"
	"hubcloud/streams"
	"hubcloud/streams/hublog"
)

// session is one hub. Its inbox is its shard's; the rest belongs to the worker that has taken it.
type session struct {
	shard *Shard
	hub   domain.HubID
	inbox inbox
	// pause is how long it was left alone after its last error.
	pause time.Duration

	// loaded says that log is known; dirty, that the ledger is to be written.
	loaded bool
	dirty  bool
	log    logState

	// ledger and presence are what the buckets have, as of their revisions, if they were read.
	// presence is what was told, also when the bucket does not have it yet, which presenceDirty
	// says.
	ledger           ledger
	ledgerRevision   uint64
	ledgerRead       bool
	presence         domain.Presence
	presenceRevision uint64
	presenceRead     bool
	presenceDirty    bool
	held             []presence.Pending
	tally            tally
	// greeting says that a hello has no ack yet because the broker has not said that the hub is
	// connected.
	greeting bool
	// hellos bounds the hub's hellos; nil before the first. noResetBefore is when the hub may be
	// reset again, and warned when the log last said that the hub is limited.
	hellos        *rate.Limiter
	noResetBefore time.Time
	warned        time.Time
}

func (s *session) now() time.Time { return s.shard.cfg.Now().UTC().Truncate(time.Microsecond) }

// do does one thing. An error means that it was not done, or not wholly, and that it may be done
// again.
func (s *session) do(ctx context.Context, reader *codec.Reader, it item) error {
	switch it.kind {
	case kindHello:
		return s.hello(ctx, it.data)
	case kindEvents:
		return s.events(ctx, reader, it.data)
	case kindObservation:
		return s.observe(ctx, *it.observation)
	case kindFlush:
		return s.flush(ctx)
	}
	return nil
}

// settle does act with what is stored about the hub now, again if that turns out to be older than
// thought. act must change the session only after what it stores is stored.
func (s *session) settle(ctx context.Context, act func() error) error {
	for try := 1; ; try++ {
		err := s.mustHold()
		if err == nil {
			err = s.current(ctx)
		}
		if err == nil {
			err = act()
		}
		if !errors.Is(err, errMoved) || try == maxTries {
			return err
		}
	}
}

// errNotHeld reports that the shard's lease is not held: its hubs are another replica's now.
var errNotHeld = errors.New("the shard's lease is not held")

// mustHold is called right before anything is written. Between it and the write the process may
// still stand still; then the write meets the revision or the sequence that somebody else has
// written meanwhile.
func (s *session) mustHold() error {
	if !s.shard.cfg.Held() {
		return errNotHeld
	}
	return nil
}

// append appends records to the hub's event log, wholly or not at all, if nobody else has appended
// since.
func (s *session) append(ctx context.Context, records []hublog.Record) error {
	if err := s.mustHold(); err != nil {
		return err
	}
	last, err := s.shard.cfg.Logs.Append(ctx, s.hub, s.log.last, records)
	if err != nil {
		return s.moved(err)
	}
	s.log.last = last
	if final := &records[len(records)-1]; final.OwnLog != "" {
		s.log.through, s.log.seq, s.log.slack = final.Through, last, 0
		s.dirty = true
	}
	return nil
}

// deviceRecord is an event of the hub with that number.
func (s *session) deviceRecord(payload []byte, seq uint64) hublog.Record {
	return hublog.Record{
		Payload: payload,
		EpochID: s.log.epoch,
		OrgID:   s.log.org,
		OwnLog:  s.log.name,
		Through: seq,
	}
}

// skipRecord is hub.events_skipped for some of the hub's numbers.
func (s *session) skipRecord(from, to uint64) hublog.Record {
	data := append(strconv.AppendUint([]byte(`{"from":`), from, 10), `,"to":`...)
	data = append(strconv.AppendUint(data, to, 10), '}')
	r := s.linkRecord(domain.EventHubEventsSkipped, s.now(), data, s.presence)
	r.OwnLog, r.Through = s.log.name, to
	return r
}

// linkRecord is an event of the cloud: its time is the cloud's own, which the cloud trusts. told is
// the hub's presence as of the event.
func (s *session) linkRecord(
	typ string, at time.Time, data []byte, told domain.Presence,
) hublog.Record {
	r := hublog.Record{
		Link: true, Payload: codec.AppendLinkEvent(nil, typ, s.hub, at, data),
		EpochID: s.log.epoch, OrgID: s.log.org,
		Connection: presence.MarshalConnection(told),
	}
	if s.log.slack == 0 && !s.log.foreign {
		r.OwnLog, r.Through = s.log.name, s.log.through
	}
	return r
}

// ack tells the hub how far its log is stored, while the lease is held: in a process that has stood
// still, what was stored before is not the latest that the hub was told, by the replica that has
// the shard now. A hub that hears nothing sends again.
func (s *session) ack(log string, through uint64) {
	cfg := &s.shard.cfg
	payload := append(append([]byte(`{"log":"`), log...), `","through":`...)
	payload = append(strconv.AppendUint(payload, through, 10), '}')
	if !cfg.Held() {
		cfg.Metrics.withheld.Inc()
		return
	}
	if err := cfg.Acks.Publish(streams.AckSubject(s.hub), payload); err != nil {
		cfg.Log.Debug("ack not sent", "hub_id", s.hub, "error", err)
		cfg.Metrics.withheld.Inc()
		return
	}
	cfg.Metrics.acks.Inc()
}
