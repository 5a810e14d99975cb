package tap

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"hubcloud/domain"
	"hubcloud/streams/disk"
	"hubcloud/streams/feed"
)

// Output receives records. Write is called concurrently, but never concurrently for the same hub.
type Output interface {
	// Write delivers records of one hub, in order. After an error, which ends the tap, any of the
	// records may have been delivered.
	Write(ctx context.Context, records []Record) error
	// Flush returns once everything that Write accepted survives the end of the process.
	Flush(ctx context.Context) error
	// Writers returns the number of concurrent calls of Write that make sense.
	Writers() int
}

// ErrReaderGone reports that the reader of the output has closed it.
var ErrReaderGone = errors.New("the reader of the output is gone")

// ErrRejected reports that the broker has rejected the tap's credentials for so long that they must
// have been revoked or renewed.
var ErrRejected = errors.New(
	"the broker rejects the tap's credentials: they were revoked or have a new password",
)

// Tap reads hub logs into an Output. It runs once.
type Tap struct {
	cfg    Config
	source *feed.Source
	hubs   *hubs
	// file is the checkpoint's; nil without one.
	file *disk.Owned
	// chosen are the configured hubs; nil selects all.
	chosen map[domain.HubID]struct{}
	// resumed reports that the positions come from a checkpoint. It has every hub that had a log
	// when it was written.
	resumed bool
	// listed reports that all logs have been listed once. Used by watch only.
	listed bool
}

// New returns a Tap.
func New(cfg Config) (*Tap, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	t := &Tap{cfg: cfg, source: feed.NewSource(cfg.Conn, cfg.Shards), hubs: newHubs(cfg.Follow)}
	if len(cfg.Hubs) > 0 {
		t.chosen = map[domain.HubID]struct{}{}
		for _, id := range cfg.Hubs {
			t.chosen[id] = struct{}{}
		}
	}
	return t, nil
}

// Run delivers records until ctx ends or, without Follow, until everything that was stored at its
// start is delivered. It then writes a last checkpoint and returns nil. It returns ErrReaderGone or
// ErrRejected, both without a last checkpoint, or an error of the checkpoint file or of the Output.
func (t *Tap) Run(ctx context.Context) error {
	defer t.source.Close()
	end, err := t.resume()
	if err != nil {
		return err
	}
	defer end()
	subs, err := t.subscribe()
	if err != nil {
		return err
	}
	defer subs.end()
	group, within := errgroup.WithContext(ctx)
	working, worked := context.WithCancel(within)
	defer worked()
	defer context.AfterFunc(within, t.hubs.wakeAll)()
	var workers sync.WaitGroup
	for range t.cfg.Output.Writers() {
		workers.Add(1)
		group.Go(func() error {
			defer workers.Done()
			return t.work(within)
		})
	}
	group.Go(func() error {
		workers.Wait()
		worked()
		return nil
	})
	group.Go(func() error { return t.watch(working, subs) })
	group.Go(func() error { return t.keepCheckpoints(working) })
	if err := group.Wait(); err != nil {
		return err
	}
	return t.lastCheckpoint()
}

// wants reports whether events of a type are delivered.
func (t *Tap) wants(typ string) bool {
	return len(t.cfg.Types) == 0 || slices.ContainsFunc(t.cfg.Types, func(wanted string) bool {
		if start, ok := strings.CutSuffix(wanted, "*"); ok {
			return strings.HasPrefix(typ, start)
		}
		return typ == wanted
	})
}

func (t *Tap) chose(id domain.HubID) bool {
	if t.chosen == nil {
		return true
	}
	_, ok := t.chosen[id]
	return ok
}

// connection returns the number of the current connection to the broker, from 1. It grows with each
// reconnect.
func (t *Tap) connection() uint64 { return t.cfg.Conn.Stats().Reconnects + 1 }
