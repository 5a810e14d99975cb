package ingest

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"hubcloud/domain"
	"hubcloud/hubbridge/codec"
	"hubcloud/streams/disk"
)

// decoders keeps the buffers of workers that have ended.
var decoders = sync.Pool{New: func() any { return new(codec.EventsDecoder) }}

// runWorkers is a worker, and then another one each time that it receives from next, unless enough
// goroutines wait for that: a new goroutine for each message would grow its stack each time.
func (sh *Shard) runWorkers(ctx context.Context, next <-chan struct{}) {
	for {
		sh.runWorker(ctx)
		if sh.idleWorkers.Add(1) > maxIdleWorkers {
			sh.idleWorkers.Add(-1)
			return
		}
		select {
		case <-next:
			sh.idleWorkers.Add(-1)
		case <-ctx.Done():
			return
		}
	}
}

// runWorker handles one item of each ready hub in turn until none is ready.
func (sh *Shard) runWorker(ctx context.Context) {
	decoder := decoders.Get().(*codec.EventsDecoder)
	defer decoders.Put(decoder)
	for {
		s, it, ok := sh.next()
		if !ok {
			return
		}
		messages, err := s.handle(ctx, decoder, it)
		sh.finish(ctx, s, it, messages, err)
	}
}

// next returns the next ready hub and its first item. When it returns false the worker ends.
func (sh *Shard) next() (s *hubState, it item, ok bool) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	for !sh.closed {
		who, waits := sh.ready.Next()
		if !waits {
			break
		}
		s = sh.hubs[domain.HubID(who.ID)]
		if it, ok = s.inbox.pop(); ok {
			s.turn = who
			sh.popped(s, it)
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

// nextEvents removes and returns the hub's next message, if it is an events message.
func (sh *Shard) nextEvents(s *hubState) ([]byte, bool) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	it, ok := s.inbox.popEvents()
	if ok {
		sh.popped(s, it)
	}
	return it.data, ok
}

// popped counts an item that a hub has had its turn for. The caller must hold the mutex.
func (sh *Shard) popped(s *hubState, it item) {
	sh.bytes -= len(it.data)
	sh.ready.Spend(s.turn, itemCost+int64(len(it.data)))
}

// finish schedules the rest of a hub's items, or pauses the hub: after an error, and while it waits
// for its share. messages is the
// number of messages that were handled with the item. After an error its events are dropped, and the
// hub is asked for them after the pause. A hello is kept unless another one waits, and so is an
// observation, because the broker does not repeat it.
func (sh *Shard) finish(ctx context.Context, s *hubState, it item, messages int, err error) {
	if err != nil {
		sh.cfg.Metrics.withheld.Add(float64(messages))
	}
	if messages > 0 && errors.Is(err, disk.ErrLow) {
		err = nil // the disk guard has logged it; nothing was written, so the hub needs no pause
	}
	if err != nil && ctx.Err() == nil && !errors.Is(err, errLeaseNotHeld) {
		sh.storageErrors.Do(func() {
			sh.cfg.Logger.Error("hub state not written", "hub_id", s.hub, "error", err)
		})
	}
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if s.dirty && !s.inbox.flushWaiting {
		s.inbox.flushWaiting = true
		// In the second half of the delay, spread over it: hubs that send at the same time do not
		// write their checkpoints at the same time.
		half := len(sh.flushes) / 2
		due := (sh.nextFlush + half + rand.IntN(half)) % len(sh.flushes)
		sh.flushes[due] = append(sh.flushes[due], s)
	}
	pause := s.wait
	s.wait = 0
	if err == nil {
		s.pause = 0
	} else {
		sh.keep(s, it)
		s.pause = min(max(2*s.pause, firstPause), maxPause)
		pause = s.pause
	}
	if pause > 0 {
		s.inbox.paused = true
		time.AfterFunc(pause, func() { sh.resume(s) })
		return
	}
	s.inbox.scheduled = false
	sh.schedule(s)
}

// keep keeps what can be handled again of an item that failed. The caller must hold the mutex.
func (sh *Shard) keep(s *hubState, it item) {
	switch it.kind {
	case kindHello:
		if !s.inbox.has(kindHello) {
			sh.bytes += len(it.data)
			s.inbox.putBack(it)
		}
	case kindObservation:
		s.inbox.putBack(it)
	case kindEvents, kindRepeatAck:
		if s.inbox.empty() {
			s.inbox.push(item{kind: kindRepeatAck})
		}
	}
}

// resume ends a hub's pause.
func (sh *Shard) resume(s *hubState) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if s.inbox.paused {
		s.inbox.paused, s.inbox.scheduled = false, false
		sh.schedule(s)
	}
}

// flushDue requests the checkpoints of the next tick. It runs at each tick.
func (sh *Shard) flushDue() {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	for _, s := range sh.flushes[sh.nextFlush] {
		s.inbox.flushWaiting, s.inbox.flush = false, true
		sh.schedule(s)
	}
	sh.flushes[sh.nextFlush] = nil
	sh.nextFlush = (sh.nextFlush + 1) % len(sh.flushes)
}

// drain handles the messages that were received and writes the checkpoints, within drainTime.
func (sh *Shard) drain(ctx context.Context) {
	for {
		select {
		case msg := <-sh.msgs:
			sh.enqueue(msg)
			continue
		default:
		}
		break
	}
	ctx, cancel := context.WithTimeout(ctx, drainTime)
	defer cancel()
	if !sh.awaitIdle(ctx) {
		// The hubs get no ack for the messages that are left, and send them again.
		sh.cfg.Logger.Warn("shard ended with unhandled messages")
	}
	for range sh.flushes {
		sh.flushDue()
	}
	if !sh.awaitIdle(ctx) {
		sh.cfg.Logger.Info("shard ended with checkpoints unwritten: they follow from the logs")
	}
}

// awaitIdle waits until no worker handles a hub; false if ctx ends first.
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

// close drops the queued items and accepts no more.
func (sh *Shard) close() {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	sh.closed = true
	sh.cfg.Metrics.sessions.Sub(float64(len(sh.hubs)))
	sh.cfg.Metrics.inbox.Sub(float64(sh.reportedBytes))
	sh.reportedBytes = 0
	for _, s := range sh.hubs {
		s.inbox = inbox{}
	}
	clear(sh.flushes)
}

// putBack puts an events message back as the hub's first item.
func (sh *Shard) putBack(s *hubState, message []byte) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	sh.bytes += len(message)
	s.inbox.putBack(item{kind: kindEvents, data: message})
}
