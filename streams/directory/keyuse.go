package directory

import (
	"cmp"
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

	"hubcloud/streams/jsapi"
	"hubcloud/streams/telemetry"
)

const (
	// keyUseEvery is the time between two writes of KeyUse.
	keyUseEvery = time.Minute
	// lastKeyUseTimeout bounds the write at the end of KeyUse.Run.
	lastKeyUseTimeout = time.Second
)

// KeyUse stores when API keys were last used, to the minute, in the bucket `key-use`. It is safe for
// concurrent use.
//
// Used only changes memory: it costs a request one lookup in a map. Run writes the changes every
// minute and once at its end. A killed process loses a minute or two of uses. Several replicas
// overwrite each other's times of a key, which differ by minutes. The times are for display only.
type KeyUse struct {
	kv       jetstream.KeyValue
	logger   *slog.Logger
	failures prometheus.Counter
	// used has a *keyUse for each key that was used in this process. Only keys in force are recorded,
	// which bounds their number.
	used sync.Map
}

// keyUse is when a key was last used, and the time that is written, in minutes since 1970.
type keyUse struct{ last, written atomic.Int64 }

// NewKeyUse returns a KeyUse on the bucket. A nil logger means slog.Default(). The metrics are
// registered with r, unless r is nil.
func NewKeyUse(kv jetstream.KeyValue, logger *slog.Logger, r prometheus.Registerer) *KeyUse {
	metric := telemetry.NewMetrics(r, "keyuse")
	t := &KeyUse{
		kv: kv, logger: cmp.Or(logger, slog.Default()),
		failures: metric.Counter("write_failures_total", "Failed writes of the times at which API keys were last "+
			"used. The service retries; until then the portal shows older times."),
	}
	return t
}

// Used records that a key in force is used at that time.
func (t *KeyUse) Used(key string, at time.Time) {
	minute := at.Unix() / 60
	known, ok := t.used.Load(key)
	if !ok {
		known, _ = t.used.LoadOrStore(key, &keyUse{})
	}
	// Stored only when it changes: concurrent requests do not contend for the cache line.
	if u := known.(*keyUse); u.last.Load() < minute {
		u.last.Store(minute)
	}
}

// Run writes uses until ctx ends, and once more then. It returns nil.
func (t *KeyUse) Run(ctx context.Context) error {
	ticker := time.NewTicker(keyUseEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			lastCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastKeyUseTimeout)
			defer cancel()
			t.write(lastCtx)
			return nil
		case <-ticker.C:
			t.write(ctx)
		}
	}
}

// write writes the changed uses. A failed write is repeated by the next call.
func (t *KeyUse) write(ctx context.Context) {
	t.used.Range(func(key, known any) bool {
		u := known.(*keyUse)
		last := u.last.Load()
		if last == u.written.Load() {
			return true
		}
		value := binary.BigEndian.AppendUint64(nil, uint64(last))
		if _, err := t.kv.Put(ctx, key.(string), value); err != nil {
			t.failures.Inc()
			t.logger.Warn("key use not written", "error", err)
			return false
		}
		u.written.Store(last)
		return true
	})
}

// LastUsed returns when each of the keys was last used, to the minute. Keys that were never used
// are missing. A temporary fault is a domain.Unavailable.
//
// Any replica of the bucket may answer, also one that is behind or cut off. A stale answer shows an
// earlier use.
func (t *KeyUse) LastUsed(ctx context.Context, keys []string) (map[string]time.Time, error) {
	all := make(map[string]time.Time, len(keys))
	for _, key := range keys {
		var minute int64
		var entry jetstream.KeyValueEntry
		err := jsapi.Retry{}.Do(ctx, func(ctx context.Context) (err error) {
			entry, err = t.kv.Get(ctx, key)
			return err
		})
		switch {
		case errors.Is(err, jetstream.ErrKeyNotFound):
		case err != nil:
			return nil, jsapi.Unavailable(
				fmt.Errorf("key use: read: %w", err),
				"the last use of API keys cannot be looked up at the moment",
			)
		case len(entry.Value()) == 8:
			minute = int64(binary.BigEndian.Uint64(entry.Value()))
		}
		if known, ok := t.used.Load(key); ok {
			minute = max(minute, known.(*keyUse).last.Load())
		}
		if minute > 0 {
			all[key] = time.Unix(minute*60, 0).UTC()
		}
	}
	return all, nil
}
