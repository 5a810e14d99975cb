// Package keyuse keeps when API keys were used last, in the bucket `key-use`: to a minute, so that
// a key in steady use costs one small write every few minutes, and a request nothing but a look
// into a map.
//
// What was used is kept in memory and written by Run: every Pause, and at the end. A process that
// is killed forgets what it had not written, a few minutes' worth at most; nobody decides anything
// by it. With several replicas the last to write wins: they are minutes apart.
package keyuse

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"

	"hubcloud/streams"
)

const (
	// Pause is the time between two writes.
	Pause = time.Minute
	// lastWrite bounds what Run does after the end of its context.
	lastWrite = time.Second
)

// Tracker keeps when keys were used. Safe for concurrent use.
type Tracker struct {
	kv       jetstream.KeyValue
	log      *slog.Logger
	failures prometheus.Counter
	// used holds a *use for each key that this process has seen: as many as there are keys.
	used sync.Map
}

// use is when one key was used last, and what of it is written: minutes since 1970.
type use struct{ last, written atomic.Int64 }

// New makes a Tracker over the bucket. log gets what cannot be written; nil discards it. Its
// metrics are registered with r, unless that is nil.
func New(kv jetstream.KeyValue, log *slog.Logger, r prometheus.Registerer) *Tracker {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	t := &Tracker{kv: kv, log: log, failures: prometheus.NewCounter(prometheus.CounterOpts{
		Name: "hubcloud_keyuse_write_failures_total",
		Help: "Times that it could not be written when API keys were used. It is tried again; " +
			"what people see of keys is older meanwhile.",
	})}
	if r != nil {
		r.MustRegister(t.failures)
	}
	return t
}

// Used notes that a key that is in force is used at that time.
func (t *Tracker) Used(key string, at time.Time) {
	minute := at.Unix() / 60
	known, ok := t.used.Load(key)
	if !ok {
		known, _ = t.used.LoadOrStore(key, &use{})
	}
	// Written only when it changes, so that requests do not fight over it.
	if u := known.(*use); u.last.Load() < minute {
		u.last.Store(minute)
	}
}

// Run writes what was used until ctx ends, and once more then. It returns nil.
func (t *Tracker) Run(ctx context.Context) error {
	ticker := time.NewTicker(Pause)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWrite)
			defer cancel()
			t.write(last)
			return nil
		case <-ticker.C:
			t.write(ctx)
		}
	}
}

// write writes what has changed. What fails is tried again at the next time.
func (t *Tracker) write(ctx context.Context) {
	t.used.Range(func(key, known any) bool {
		u := known.(*use)
		last := u.last.Load()
		if last == u.written.Load() {
			return true
		}
		if _, err := t.kv.Put(ctx, key.(string), binary.BigEndian.AppendUint64(nil, uint64(last))); err != nil {
			t.failures.Inc()
			t.log.Warn("cannot write when API keys were used", "error", err)
			return false
		}
		u.written.Store(last)
		return true
	})
}

// LastUsed gives when each of the keys was used last, to a minute; those that never were are
// absent. A fault that passes is a domain.Unavailable.
//
// Any replica of the bucket answers, also one that is behind or cut off. A stale answer shows an
// earlier use than the last: people see it, and nothing is decided by it.
func (t *Tracker) LastUsed(ctx context.Context, keys []string) (map[string]time.Time, error) {
	all := make(map[string]time.Time, len(keys))
	for _, key := range keys {
		var minute int64
		var entry jetstream.KeyValueEntry
		err := streams.Persist(ctx, func(ctx context.Context) (err error) {
			entry, err = t.kv.Get(ctx, key)
			return err
		})
		switch {
		case errors.Is(err, jetstream.ErrKeyNotFound):
		case err != nil:
			return nil, streams.Unavailable(
				fmt.Errorf("when API keys were used: %w", err),
				"it cannot be looked up at the moment when API keys were used",
			)
		case len(entry.Value()) == 8:
			minute = int64(binary.BigEndian.Uint64(entry.Value()))
		}
		if known, ok := t.used.Load(key); ok {
			minute = max(minute, known.(*use).last.Load())
		}
		if minute > 0 {
			all[key] = time.Unix(minute*60, 0).UTC()
		}
	}
	return all, nil
}
