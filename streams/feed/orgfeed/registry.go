package orgfeed

import (
	"cmp"
	"container/list"
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"

	"hubcloud/domain"
)

const (
	// maxPerOrg is how many readers of an organization are kept.
	maxPerOrg = 1000
	// keepReaders is how long a reader is kept after it last read.
	keepReaders = 7 * 24 * time.Hour
	// defaultMax is how many readers a process keeps.
	defaultMax = 100_000
)

// RegistryConfig configures a Registry. Conn, Bucket, Retention, Counted, Owns and HubLag
// are required.
type RegistryConfig struct {
	// Conn is the connection to the bucket's account.
	Conn *nats.Conn `check:"set"`
	// Bucket is the bucket feed-readers.
	Bucket jetstream.KeyValue `check:"set"`
	// Retention is how long a position can be read on from.
	Retention time.Duration `check:"positive"`
	// Counted returns how many events of an organization this process has received since its first
	// call or earlier (orgfeed.Feed.Counted).
	Counted func(org string) uint64 `check:"set"`
	// Owns reports whether an organization has a hub. Readers of other hubs are not shown.
	Owns func(org string, hub domain.HubID) bool `check:"set"`
	// HubLag returns how far a cursor of a hub's log is behind (feed.Logs.Lag).
	HubLag func(
		ctx context.Context, hub domain.HubID, after string,
	) (domain.FeedLag, error) `check:"set"`
	// Max is how many readers this process keeps. Defaults to 100,000.
	Max int
	// Now is the clock. Defaults to time.Now.
	Now func() time.Time
	// Logger defaults to slog.Default().
	Logger *slog.Logger
	// Metrics registers the metrics. Nil registers none.
	Metrics prometheus.Registerer
}

// WithDefaults returns a copy with defaults for what is not set.
func (c RegistryConfig) WithDefaults() RegistryConfig {
	c.Max = cmp.Or(c.Max, defaultMax)
	c.Logger = cmp.Or(c.Logger, slog.Default())
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

// Registry has the readers of all organizations. It is safe for concurrent use.
type Registry struct {
	cfg     RegistryConfig
	metrics *registryMetrics

	mu    sync.Mutex
	orgs  map[string]*org
	total int
}

// org has the readers of one organization. It is guarded by Registry.mu.
type org struct {
	id      string
	readers map[domain.FeedReaderID]*list.Element // of *reader
	// newest has the readers, the one that read last first.
	newest list.List
	// revision is the revision of the organization's value in the bucket, 0 for none.
	revision uint64
	// dirty reports that readers have changed since the value was written. It is not written before
	// due. written is when any replica last wrote it.
	dirty        bool
	due, written time.Time
}

// reader is a reader whose Behind is not set.
type reader struct {
	domain.FeedReader
	// behind is how many events followed the position when the process had counted mark events of
	// the organization. Both are for readers of the organization's feed only.
	behind, mark uint64
}

// New returns a Registry without readers. Run fills it from the bucket.
func NewRegistry(cfg RegistryConfig) (*Registry, error) {
	cfg = cfg.WithDefaults()
	if err := domain.CheckFields("feed readers", cfg); err != nil {
		return nil, err
	}
	return &Registry{
		cfg: cfg, metrics: newRegistryMetrics(cfg.Metrics, cfg.Retention), orgs: map[string]*org{},
	}, nil
}

// Saw records that a reader of an organization was given everything up to a position, which is that
// far behind. The lag of a reader of the feed must have been counted by this process.
func (r *Registry) Saw(orgID string, id domain.FeedReaderID, position string, lag domain.FeedLag) {
	if id.Hub == "" {
		r.cfg.Counted(orgID) // events are counted from now on
	}
	now := r.cfg.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	o := r.org(orgID)
	o.dirty = true
	seen := reader{
		FeedReader: domain.FeedReader{
			FeedReaderID: id, Position: position, At: lag.At, LastSeen: now,
		},
		behind: lag.Behind, mark: lag.Mark,
	}
	if element, ok := o.readers[id]; ok {
		*element.Value.(*reader) = seen
		o.newest.MoveToFront(element)
		return
	}
	o.readers[id] = o.newest.PushFront(&seen)
	r.total++
	r.trim(o)
}

// org returns an organization, which it adds if necessary. The caller must hold r.mu.
func (r *Registry) org(id string) *org {
	o := r.orgs[id]
	if o == nil {
		o = &org{id: id, readers: map[domain.FeedReaderID]*list.Element{}}
		r.orgs[id] = o
	}
	return o
}

// trim removes the readers that are too many after one was added to o. The caller must hold r.mu.
func (r *Registry) trim(o *org) {
	for o.newest.Len() > maxPerOrg {
		r.evict(o)
	}
	for r.total > r.cfg.Max {
		largest := o
		for _, other := range r.orgs {
			if other.newest.Len() > largest.newest.Len() {
				largest = other
			}
		}
		r.evict(largest)
	}
}

func (r *Registry) evict(o *org) {
	oldest := o.newest.Back()
	r.remove(o, oldest)
	r.metrics.evicted.Inc()
}

func (r *Registry) remove(o *org, element *list.Element) {
	delete(o.readers, element.Value.(*reader).FeedReaderID)
	o.newest.Remove(element)
	r.total--
}

// removeOld removes the readers of an organization that have not read for long. The caller must
// hold r.mu.
func (r *Registry) removeOld(o *org, now time.Time) {
	for e := o.newest.Back(); e != nil && now.Sub(e.Value.(*reader).LastSeen) > keepReaders; {
		r.remove(o, e)
		e = o.newest.Back()
	}
}

// Page returns up to limit readers of an organization that has reports, after an id, in the order of
// their ids. Behind is nil where it is not known. Errors are ctx's, and service_unavailable.
func (r *Registry) Page(
	ctx context.Context, orgID string, has func(domain.FeedReaderID) bool, limit int,
	after *domain.FeedReaderID,
) (page domain.Page[domain.FeedReader], err error) {
	all := slices.DeleteFunc(r.list(orgID), func(reader domain.FeedReader) bool {
		return !has(reader.FeedReaderID)
	})
	if after != nil {
		from, _ := slices.BinarySearchFunc(all, *after, compareID)
		if from < len(all) && all[from].FeedReaderID == *after {
			from++
		}
		all = all[from:]
	}
	page.HasMore = len(all) > limit
	page.Data = append([]domain.FeedReader{}, all[:min(limit, len(all))]...)
	for i := range page.Data {
		if reader := &page.Data[i]; reader.Hub != "" {
			if err := r.countHub(ctx, reader); err != nil {
				return page, err
			}
		}
	}
	return page, nil
}

func compareID(reader domain.FeedReader, id domain.FeedReaderID) int {
	return reader.FeedReaderID.Compare(id)
}

// countHub sets Behind of a reader of a hub's log, or Lost.
func (r *Registry) countHub(ctx context.Context, reader *domain.FeedReader) error {
	lag, err := r.cfg.HubLag(ctx, reader.Hub, reader.Position)
	switch domain.CodeOf(err) {
	case domain.CodeCursorExpired:
		reader.Lost = domain.ExpiresIn(reader.At, r.cfg.Retention, r.cfg.Now()) >= 0
		return nil
	case domain.CodeNotFound: // released at this moment
		return nil
	}
	if err != nil {
		return err
	}
	reader.Behind = &lag.Behind
	return nil
}

// list returns the readers of an organization, in the order of their ids. Behind is set for readers
// of the organization's feed whose positions have not expired.
func (r *Registry) list(orgID string) []domain.FeedReader {
	now, counted := r.cfg.Now(), r.cfg.Counted
	var all []domain.FeedReader
	r.mu.Lock()
	defer r.mu.Unlock()
	o := r.orgs[orgID]
	if o == nil {
		return nil
	}
	r.removeOld(o, now)
	for e := o.newest.Front(); e != nil; e = e.Next() {
		seen := e.Value.(*reader)
		if !r.isShown(orgID, seen) {
			continue
		}
		shown := seen.FeedReader
		if shown.Hub == "" && r.left(seen, now) >= 0 {
			behind := seen.behind
			if shown.Key == "" { // the events that a limited key does not reach are counted as well
				behind += counted(orgID) - seen.mark
			}
			shown.Behind = &behind
		}
		all = append(all, shown)
	}
	slices.SortFunc(all, func(a, b domain.FeedReader) int {
		return a.FeedReaderID.Compare(b.FeedReaderID)
	})
	return all
}

// left returns how long it takes until a reader's position expires.
func (r *Registry) left(seen *reader, now time.Time) time.Duration {
	return domain.ExpiresIn(seen.At, r.cfg.Retention, now)
}

func (r *Registry) isShown(orgID string, seen *reader) bool {
	return seen.Hub == "" || r.cfg.Owns(orgID, seen.Hub)
}
