package tap

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"golang.org/x/sync/errgroup"

	"hubcloud/domain"
	"hubcloud/streams/hublog"
)

// DefaultCheckpointEvery is the pause between two checkpoints.
const DefaultCheckpointEvery = time.Second

// Config says what is tapped and where it goes.
type Config struct {
	// Conn is a tap's connection, as Connect makes it; Shards is how many shards the installation
	// has.
	Conn   *nats.Conn
	Shards int
	// Hubs are tapped; none stands for all, also those that come while it runs.
	Hubs []domain.HubID
	// Types are the event types that are delivered; one that ends in ".*" stands for all that begin
	// so. None stands for all.
	Types []string
	// Commands has records about commands delivered as well.
	Commands bool
	// Since is where a hub begins that has no position yet: with the first event stored then or
	// later; zero is the oldest that is kept. New begins with the next event instead.
	Since time.Time
	New   bool
	// Follow goes on with events as they come. Otherwise Run ends with what there was when it
	// began.
	Follow bool
	// Output is where records go.
	Output Output
	// Checkpoint is the file that positions are kept in; empty keeps none.
	Checkpoint string
	// CheckpointEvery is the pause between two checkpoints; 0 is DefaultCheckpointEvery. It is
	// longer when writing one takes long.
	CheckpointEvery time.Duration
	// Log gets what went wrong and was got over; nil is the default logger.
	Log *slog.Logger
}

// Output is where records go. Write is called by many goroutines at once, but never at once for the
// same hub.
type Output interface {
	// Write delivers records of one hub, in order. Records of a call that failed may or may not
	// have been delivered. An error ends the tap.
	Write(ctx context.Context, records []Record) error
	// Flush returns once all that Write has taken is out of the tap's hands: nothing of it is lost
	// when the tap ends.
	Flush(ctx context.Context) error
	// Writers is how many calls of Write are worthwhile at once.
	Writers() int
}

// ErrReaderGone says that nobody reads the Output any more.
var ErrReaderGone = errors.New("nobody reads the output any more")

// ErrRefused says that the broker has not let the tap in for so long that its credentials must have
// been revoked or renewed.
var ErrRefused = errors.New(
	"the broker refuses the tap's credentials: they were revoked, or have another password by now",
)

// Tap is one run of a tap.
type Tap struct {
	cfg    Config
	source *hublog.Source
	hubs   *hubs
	// chosen are the hubs of the configuration; nil are all.
	chosen map[domain.HubID]struct{}
	// resumed says that it goes on from a checkpoint, in which every hub is that had a log by then.
	resumed bool
	// listed says that all logs have been listed once. The watch's.
	listed bool
}

// New checks a configuration and makes a Tap. The error says what is wrong with it.
func New(cfg Config) (*Tap, error) {
	switch {
	case cfg.Conn == nil || cfg.Shards < 1:
		return nil, errors.New("tap: no connection, or no shards")
	case cfg.Output == nil:
		return nil, errors.New("tap: no output")
	case cfg.New && !cfg.Since.IsZero():
		return nil, errors.New("tap: either since or new")
	}
	if cfg.CheckpointEvery == 0 {
		cfg.CheckpointEvery = DefaultCheckpointEvery
	}
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	t := &Tap{cfg: cfg, source: hublog.NewSource(cfg.Conn, cfg.Shards), hubs: newHubs(cfg.Follow)}
	if len(cfg.Hubs) > 0 {
		t.chosen = map[domain.HubID]struct{}{}
		for _, id := range cfg.Hubs {
			t.chosen[id] = struct{}{}
		}
	}
	return t, nil
}

// Run taps until ctx ends, or everything that was there when it began is delivered, and writes a
// last checkpoint. It returns nil then; ErrReaderGone and ErrRefused, after which there is no last
// checkpoint; and the errors of the checkpoint's file and of the Output.
func (t *Tap) Run(ctx context.Context) error {
	defer t.source.Close()
	unlock, err := t.resume()
	if err != nil {
		return err
	}
	defer unlock()
	heard, err := t.subscribe()
	if err != nil {
		return err
	}
	defer heard.end()
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
	group.Go(func() error { return t.watch(working, heard) })
	group.Go(func() error { return t.keepCheckpoints(working) })
	if err := group.Wait(); err != nil {
		return err
	}
	return t.lastCheckpoint()
}

// wants says whether events of a type are delivered.
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

// epoch counts the connection's lives, from 1.
func (t *Tap) epoch() uint64 { return t.cfg.Conn.Stats().Reconnects + 1 }
