package ingest

import (
	"context"
	"errors"
	"time"

	"hubcloud/hubbridge/codec"
	"hubcloud/streams/diskspace"
)

// workOff is a worker: it takes sessions in turn until none is ready.
func (sh *Shard) workOff() {
	var reader codec.Reader
	for {
		s, it, ok := sh.take()
		if !ok {
			return
		}
		err := s.do(sh.work, &reader, it)
		sh.done(s, it, err)
	}
}

// take gives the next session and its first item. Without any the worker is over.
func (sh *Shard) take() (s *session, it item, ok bool) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	for len(sh.ready) > 0 && !sh.closed {
		s = sh.ready[0]
		sh.ready[0] = nil
		if sh.ready = sh.ready[1:]; len(sh.ready) == 0 {
			sh.ready = nil
		}
		if it, ok = s.inbox.pop(); ok {
			sh.bytes -= len(it.data)
			return s, it, true
		}
		s.inbox.scheduled = false
	}
	if sh.workers--; sh.workers == 0 && sh.idle != nil {
		close(sh.idle)
		sh.idle = nil
	}
	return nil, item{}, false
}

// more gives the session's next item, if it is an events message.
func (sh *Shard) more(s *session) ([]byte, bool) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	it, ok := s.inbox.popEvents()
	sh.bytes -= len(it.data)
	return it.data, ok
}

// done puts a session back behind the others, or leaves it alone for a while after an error. A
// message of the hub is then gone: it was not acknowledged. What the broker said about the hub is
// kept, because nobody says it again.
func (sh *Shard) done(s *session, it item, err error) {
	// A disk that is low is reported once, by its guard. Nothing was tried, so there is nothing to
	// wait for either: the hub sends again by itself.
	low := errors.Is(err, diskspace.ErrLow) && it.kind != kindObservation && it.kind != kindFlush
	if low {
		sh.cfg.Metrics.withheld.Inc()
		err = nil
	}
	if err != nil && sh.work.Err() == nil && !errors.Is(err, errNotHeld) {
		sh.troubles.Do(func() {
			sh.cfg.Log.Error(
				"a hub's log or records cannot be written; trying again", "hub_id", s.hub,
				"error", err,
			)
		})
	}
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if s.dirty && !s.inbox.waiting {
		s.inbox.waiting = true
		sh.unsaved = append(sh.unsaved, s)
	}
	if err == nil {
		s.pause = 0
		s.inbox.scheduled = false
		sh.schedule(s)
		return
	}
	if it.kind == kindObservation {
		s.inbox.putBack(it)
	} else if it.kind != kindFlush {
		sh.cfg.Metrics.withheld.Inc()
	}
	s.pause = min(max(2*s.pause, firstPause), maxPause)
	s.inbox.paused = true
	time.AfterFunc(s.pause, func() { sh.resume(s) })
}

// resume ends a session's pause.
func (sh *Shard) resume(s *session) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if s.inbox.paused {
		s.inbox.paused, s.inbox.scheduled = false, false
		sh.schedule(s)
	}
}

// save asks for the ledgers that are due.
func (sh *Shard) save() {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	for _, s := range sh.due {
		s.inbox.waiting, s.inbox.flush = false, true
		sh.schedule(s)
	}
	sh.due, sh.unsaved = sh.unsaved, nil
}

// drain finishes what was received and writes the ledgers.
func (sh *Shard) drain() {
	for {
		select {
		case msg := <-sh.msgs:
			sh.deliver(msg)
			continue
		default:
		}
		break
	}
	deadline, cancel := context.WithTimeout(sh.work, drainTime)
	defer cancel()
	sh.awaitIdle(deadline)
	sh.save()
	sh.save() // those that waited for the tick after the next as well
	if !sh.awaitIdle(deadline) {
		sh.cfg.Log.Warn(
			"a shard ends with work left; its hubs send again what was not acknowledged",
		)
	}
}

// awaitIdle waits until no worker is left.
func (sh *Shard) awaitIdle(ctx context.Context) bool {
	sh.mu.Lock()
	if sh.workers == 0 {
		sh.mu.Unlock()
		return true
	}
	idle := make(chan struct{})
	sh.idle = idle
	sh.mu.Unlock()
	select {
	case <-idle:
		return true
	case <-ctx.Done():
		return false
	}
}

// close takes in nothing more. What is queued is dropped.
func (sh *Shard) close() {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	sh.closed = true
	sh.cfg.Metrics.sessions.Sub(float64(len(sh.sessions)))
	sh.cfg.Metrics.inbox.Sub(float64(sh.told))
	sh.told = 0
	for _, s := range sh.sessions {
		s.inbox = inbox{}
	}
	sh.ready, sh.unsaved, sh.due = nil, nil, nil
}

// putBack puts an events message of a session back in front.
func (sh *Shard) putBack(s *session, message []byte) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	sh.bytes += len(message)
	s.inbox.putBack(item{kind: kindEvents, data: message})
}
