package journal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/jsapi"
)

const (
	// defaultReserve is much more than it takes to write all hub logs again.
	defaultReserve = time.Hour
	// minWindow is the shortest window in which the broker accepts to look for duplicates.
	minWindow = 100 * time.Millisecond
)

// Config configures a Journal. Conn and Retention are required.
type Config struct {
	// Conn is a connection to the account CLOUD of the broker with the journals.
	Conn *nats.Conn `check:"set"`
	// Shards is the number of the installation's shards. Defaults to Groups.
	Shards int
	// Groups is the number of groups, from 1 to 16: see Groups. It must never change for an
	// installation. Defaults to 1.
	Groups int `check:"1 to 16"`
	// Replicas is the number of copies of each journal. Defaults to 1.
	Replicas int `check:"positive"`
	// Retention is how long hub logs keep records, and Reserve how much longer a journal keeps
	// them: so much later than its oldest record expires, a hub's log can still be written again as
	// a whole. Reserve defaults to an hour.
	Retention, Reserve time.Duration
	// CacheBytes bounds the commits that the readers keep. Defaults to 32 MiB.
	CacheBytes int `check:"at least 0"`
	// Sole reports that no other process writes the journals: the broker is a part of this one. Then a
	// commit is not received again from the broker.
	Sole bool
	// SyncFolders syncs the folders that contain the streams of an account, so that a power cut
	// cannot remove new streams. Nil when the broker is another process.
	SyncFolders func(streams.Account) error
	// Now is the clock. Defaults to time.Now.
	Now func() time.Time
	// Logger defaults to slog.Default.
	Logger *slog.Logger
	// Metrics registers the metrics. Nil registers none.
	Metrics prometheus.Registerer
}

// WithDefaults returns a copy with defaults for what is not set.
func (c Config) WithDefaults() Config {
	c.Groups = cmp.Or(c.Groups, 1)
	c.Shards = cmp.Or(c.Shards, c.Groups)
	c.Reserve = cmp.Or(c.Reserve, defaultReserve)
	c.Replicas = cmp.Or(c.Replicas, 1)
	c.CacheBytes = cmp.Or(c.CacheBytes, 32<<20)
	c.Logger = cmp.Or(c.Logger, slog.Default())
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

// Validate returns an error that names the first invalid field.
func (c Config) Validate() error {
	switch {
	case c.Shards < c.Groups:
		return fmt.Errorf("journal: Shards is %d: must be at least %d", c.Shards, c.Groups)
	case c.Retention < minWindow:
		return fmt.Errorf("journal: Retention is %v: must be at least %v", c.Retention, minWindow)
	}
	return domain.CheckFields("journal", c)
}

// GroupOf returns the group of a shard.
func GroupOf(shard, groups int) int { return shard % groups }

// isReplicated reports whether a commit costs several servers.
func (j *Journal) isReplicated() bool { return j.cfg.Groups > 1 || j.cfg.Replicas > 1 }

// Journal is the journals of all groups. All methods may be called at any time, from any goroutine,
// unless they say something else.
type Journal struct {
	cfg     Config
	api     jsapi.API
	metrics *metrics
	cache   *cache
	// groups are there once Open has returned.
	groups []*group
	// subscribers get every commit. The slice is replaced, never changed.
	subscribeMu sync.Mutex
	subscribers atomic.Pointer[[]func(group int, commits []Commit)]
}

// New returns the journals of an installation. It panics if cfg.Metrics has their metrics already.
func New(cfg Config) (*Journal, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	j := &Journal{
		cfg: cfg, api: jsapi.New(cfg.Conn), metrics: newMetrics(cfg.Metrics),
		cache: newCache(cfg.CacheBytes),
	}
	j.subscribers.Store(&[]func(int, []Commit){})
	return j, nil
}

// Declare creates the streams of the journals and of the snapshots if they are missing, and updates
// their retention and their number of replicas. It does not sync the folders of new streams.
func (j *Journal) Declare(ctx context.Context) error {
	js, err := jetstream.New(j.cfg.Conn)
	if err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	for group := range j.cfg.Groups {
		if err := j.declareGroup(ctx, js, group); err != nil {
			return groupError(group, err)
		}
	}
	if _, err := streams.Declare(ctx, js, j.indexConfig()); err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	return nil
}

func (j *Journal) declareGroup(ctx context.Context, js jetstream.JetStream, group int) error {
	want := j.streamConfig(group)
	declared := want
	switch found, err := j.api.Info(ctx, want.Name); {
	case err == nil:
		// A different retention is updated below.
		declared.MaxAge = found.Config.MaxAge
	case !errors.Is(err, jsapi.ErrNoStream):
		return err
	}
	stream, err := streams.Declare(ctx, js, declared)
	if err != nil {
		return err
	}
	got := stream.CachedInfo().Config
	if got.MaxAge == want.MaxAge {
		return nil
	}
	j.cfg.Logger.Info(
		"journal retention changed", "group", group, "from", got.MaxAge, "to", want.MaxAge,
	)
	got.MaxAge, got.Duplicates = want.MaxAge, want.Duplicates
	err = jsapi.SetUp(ctx, func(ctx context.Context) error {
		_, err := js.UpdateStream(ctx, got)
		return err
	})
	if err != nil {
		return fmt.Errorf("set the retention: %w", err)
	}
	return nil
}

func (j *Journal) streamConfig(group int) jetstream.StreamConfig {
	subject := streams.JournalSubject(group)
	return jetstream.StreamConfig{
		Name: streams.JournalStream(group), Subjects: []string{subject},
		Retention: jetstream.LimitsPolicy, Storage: jetstream.FileStorage,
		Replicas: j.cfg.Replicas, MaxAge: j.cfg.Retention + j.cfg.Reserve,
		// Expected sequences prevent duplicates; message ids are not used.
		Duplicates: minWindow,
		// The commits are a gapless sequence, of which only the oldest expire.
		DenyDelete: true, DenyPurge: true,
		AllowDirect: true,
		RePublish: &jetstream.RePublish{
			Source: subject, Destination: streams.JournalFeed(group),
		},
	}
}

func (j *Journal) indexConfig() jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name: streams.JournalIndexStream, Subjects: []string{streams.JournalIndexFilter},
		Retention: jetstream.LimitsPolicy, Storage: jetstream.FileStorage,
		Replicas: j.cfg.Replicas, MaxMsgsPerSubject: 1,
		AllowAtomicPublish: true,
	}
}
