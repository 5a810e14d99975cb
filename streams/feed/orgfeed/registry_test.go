package orgfeed

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/streamstest"
)

const (
	orgA = "01940000-0000-7000-8000-000000000001"
	orgB = "01940000-0000-7000-8000-000000000002"
	hubA = domain.HubID("hub-aaaa-aaaa-aaaa")
	hubB = domain.HubID("hub-bbbb-bbbb-bbbb")
)

// replica is a Registry that runs until stop, with a count of events and a clock.
type replica struct {
	*Registry
	counted atomic.Uint64
	ahead   atomic.Int64 // of the real clock
	metrics *prometheus.Registry
	stop    func()
}

func startReplica(tb testing.TB, conns *streams.Conns, maximum int) *replica {
	tb.Helper()
	buckets, err := streams.OpenBuckets(tb.Context(), conns, 1)
	streamstest.Must(tb, err)
	r := &replica{metrics: prometheus.NewRegistry()}
	r.Registry, err = NewRegistry(RegistryConfig{
		Conn: conns.Cloud, Bucket: buckets.FeedReaders, Retention: time.Hour,
		Counted: func(string) uint64 { return r.counted.Load() },
		Owns: func(org string, hub domain.HubID) bool {
			return org == orgA && hub == hubA || org == orgB && hub == hubB
		},
		HubLag: func(context.Context, domain.HubID, string) (domain.FeedLag, error) {
			return domain.FeedLag{Behind: r.counted.Load()}, nil
		},
		Max: maximum, Metrics: r.metrics, Logger: slog.New(slog.DiscardHandler),
		Now: func() time.Time { return time.Now().Add(time.Duration(r.ahead.Load())) },
	})
	streamstest.Must(tb, err)
	r.stop = streamstest.Run(tb, "registry", r.Run)
	return r
}

func lag(behind, mark uint64) domain.FeedLag {
	return domain.FeedLag{Behind: behind, Mark: mark, At: time.Now()}
}

// shown returns the list of an organization as text: ids, positions and counts.
func (r *replica) shown(org string) (text string) {
	for _, reader := range r.list(org) {
		behind := "?"
		if reader.Behind != nil {
			behind = fmt.Sprint(*reader.Behind)
		}
		text += fmt.Sprintf(
			"%s %s%s %s %s\n", reader.Name, reader.Hub, reader.Part, reader.Position, behind,
		)
	}
	return text
}

// Readers are listed with their last positions, each organization's alone. What is stored after the
// last read of a reader of the feed counts, on every replica and after a restart.
func TestListAcrossReplicas(t *testing.T) {
	t.Parallel()
	conns := streamstest.Start(t)
	one, two := startReplica(t, conns, 0), startReplica(t, conns, 0)
	one.counted.Store(100)
	two.counted.Store(7)
	one.Saw(orgA, domain.FeedReaderID{Name: "b"}, "p1", lag(3, 100))
	one.Saw(orgA, domain.FeedReaderID{Name: "b"}, "p2", lag(2, 100))
	one.Saw(orgA, domain.FeedReaderID{Name: "a", Part: "1/2"}, "p3", lag(0, 100))
	two.Saw(orgA, domain.FeedReaderID{Name: "b", Hub: hubA}, "p4", lag(9, 0))
	two.Saw(orgA, domain.FeedReaderID{Name: "b", Hub: hubB}, "p5", lag(9, 0)) // not its own
	two.Saw(orgB, domain.FeedReaderID{Name: "c"}, "p6", lag(1, 7))
	const (
		wantA = "a 1/2 p3 0\nb  p2 2\nb hub-aaaa-aaaa-aaaa p4 ?\n"
		wantB = "c  p6 1\n"
	)
	for name, r := range map[string]*replica{"one": one, "two": two} {
		streamstest.Eventually(t, "replica "+name+" lists all readers", func() bool {
			return r.shown(orgA) == wantA && r.shown(orgB) == wantB
		})
	}
	// Nobody reads, and ten events are stored.
	one.counted.Add(10)
	two.counted.Add(10)
	const grown = "a 1/2 p3 10\nb  p2 12\nb hub-aaaa-aaaa-aaaa p4 ?\n"
	for name, r := range map[string]*replica{"one": one, "two": two} {
		if got := r.shown(orgA); got != grown {
			t.Errorf("replica %s after ten events: got\n%swant\n%s", name, got, grown)
		}
	}
	// A read at the other replica takes the place of the former one.
	two.Saw(orgA, domain.FeedReaderID{Name: "b"}, "p7", lag(0, 17))
	streamstest.Eventually(t, "replica one knows the new position", func() bool {
		return one.shown(orgA) == "a 1/2 p3 10\nb  p7 0\nb hub-aaaa-aaaa-aaaa p4 ?\n"
	})
	one.Saw(orgA, domain.FeedReaderID{Name: "d"}, "p8", lag(4, 110))
	one.stop()
	two.stop()
	again := startReplica(t, conns, 0)
	streamstest.Eventually(t, "a new replica has what was written at the stop", func() bool {
		return again.shown(orgA) == "a 1/2 p3 10\nb  p7 0\nb hub-aaaa-aaaa-aaaa p4 ?\nd  p8 4\n"
	})
}

// An organization that makes up names loses its own oldest readers only, also when the process is
// full.
func TestBounds(t *testing.T) {
	t.Parallel()
	r := startReplica(t, streamstest.Start(t), maxPerOrg+10)
	for n := range 20 {
		r.Saw(orgB, domain.FeedReaderID{Name: fmt.Sprintf("b%02d", n)}, "p", lag(0, 0))
	}
	r.Saw(orgA, domain.FeedReaderID{Name: "kept"}, "p", lag(0, 0))
	for n := range 3 * maxPerOrg {
		r.Saw(orgA, domain.FeedReaderID{Name: fmt.Sprint("made up ", n)}, "p", lag(0, 0))
		if n%500 == 0 {
			r.Saw(orgA, domain.FeedReaderID{Name: "kept"}, "p", lag(0, 0))
		}
	}
	a, b := r.list(orgA), r.list(orgB)
	if len(a) != maxPerOrg-10 || a[0].Name != "kept" {
		t.Errorf("the organization that makes up names has %d readers, first %q, want %d and \"kept\"",
			len(a), a[0].Name, maxPerOrg-10)
	}
	if len(b) != 20 {
		t.Errorf("the other organization has %d readers, want 20", len(b))
	}
	if got := streamstest.MetricValue(t, r.metrics, "hubcloud_orgfeed_readers_evicted_total"); got < 2*maxPerOrg {
		t.Errorf("hubcloud_orgfeed_readers_evicted_total is %v, want at least %d", got, 2*maxPerOrg)
	}
}

// Readers are counted by how close they are to losing events, and dropped a week after they read.
func TestStates(t *testing.T) {
	t.Parallel()
	r := startReplica(t, streamstest.Start(t), 0)
	r.Saw(orgA, domain.FeedReaderID{Name: "a"}, "p", lag(5, 0))
	r.Saw(orgA, domain.FeedReaderID{Name: "b", Hub: hubA}, "p", lag(5, 0))
	r.Saw(orgA, domain.FeedReaderID{Name: "not its own", Hub: hubB}, "p", lag(5, 0))
	check := func(ahead time.Duration, ok, endangered, expired, least float64) {
		t.Helper()
		r.ahead.Store(int64(ahead))
		r.measure()
		for state, want := range map[domain.FeedReaderState]float64{
			domain.FeedReaderOK: ok, domain.FeedReaderEndangered: endangered,
			domain.FeedReaderExpired: expired,
		} {
			if got := streamstest.MetricValue(
				t, r.metrics, "hubcloud_orgfeed_readers", "state", string(state),
			); got != want {
				t.Errorf("after %v: %v readers are %s, want %v", ahead, got, state, want)
			}
		}
		got := streamstest.MetricValue(t, r.metrics, "hubcloud_orgfeed_readers_expire_seconds")
		if got > least || got < least-60 {
			t.Errorf("after %v: hubcloud_orgfeed_readers_expire_seconds is %v, want %v", ahead, got, least)
		}
	}
	check(0, 2, 0, 0, 3600)
	check(44*time.Minute, 2, 0, 0, 16*60)
	check(50*time.Minute, 0, 2, 0, 10*60)
	r.Saw(orgA, domain.FeedReaderID{Name: "a"}, "p", domain.FeedLag{At: time.Now().Add(50 * time.Minute)})
	check(70*time.Minute, 1, 0, 1, 40*60)
	if got := r.list(orgA); len(got) != 2 || got[0].Behind == nil || got[1].Behind != nil {
		t.Errorf("list: got %+v, want two readers, and a count for the first", got)
	}
	check(keepReaders+51*time.Minute, 0, 0, 0, 3600)
	if got := r.list(orgA); len(got) != 0 {
		t.Errorf("list a week later: got %+v, want none", got)
	}
}

// A value that another replica has written meanwhile, or that has expired in the bucket, is no
// obstacle.
func TestWriteAfterConflict(t *testing.T) {
	t.Parallel()
	conns := streamstest.Start(t)
	r := startReplica(t, conns, 0)
	stored := func() string {
		entry, err := r.cfg.Bucket.Get(t.Context(), orgA)
		if err != nil {
			return ""
		}
		other := startReplica(t, conns, 0)
		defer other.stop()
		streamstest.Must(t, other.merge(orgA, entry.Value(), entry.Revision()))
		return other.shown(orgA)
	}
	r.Saw(orgA, domain.FeedReaderID{Name: "a"}, "p1", lag(0, 0))
	streamstest.Eventually(t, "the reader is stored", func() bool { return stored() == "a  p1 0\n" })
	streamstest.Must(t, r.cfg.Bucket.Purge(t.Context(), orgA))
	r.ahead.Store(int64(time.Minute))
	r.Saw(orgA, domain.FeedReaderID{Name: "a"}, "p2", lag(0, 0))
	streamstest.Eventually(t, "the reader is stored again", func() bool { return stored() == "a  p2 0\n" })
}

// Values of the bucket that cannot be read are reported and change nothing.
func FuzzMerge(f *testing.F) {
	f.Add([]byte(`{"readers":[{"name":"a","position":"p","at":1,"seen":1767323045000,"behind":3}]}`))
	f.Add([]byte(`{"readers":[{"name":"a","hub":"hub-aaaa-aaaa-aaaa","part":"1/2"}]}`))
	f.Add([]byte(`{"readers":[1]}`))
	f.Add([]byte(`[]`))
	f.Fuzz(func(t *testing.T, value []byte) {
		r := &Registry{
			cfg: RegistryConfig{
				Retention: time.Hour, Max: 10, Now: time.Now,
				Counted: func(string) uint64 { return 0 },
				Owns:    func(string, domain.HubID) bool { return true },
			},
			metrics: newRegistryMetrics(nil, time.Hour), orgs: map[string]*org{},
		}
		_ = r.merge(orgA, value, 1)
		if n := len(r.list(orgA)); n > 10 {
			t.Errorf("merge of %q: %d readers, want at most 10", value, n)
		}
	})
}
