package views

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/goleak"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/journal"
	"hubcloud/streams/jsapi"
	"hubcloud/streams/streamstest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, streamstest.Leaks()...) }

const testRetention = time.Hour

// notReleased is the Config.IsReleased of hubs that stay with their organization.
func notReleased(context.Context, domain.HubID) (bool, error) { return false, nil }

// source is the writer of a journal, with its index and a copy of all records.
type source struct {
	*journal.Writer
	index  *journal.Index
	clock  time.Time
	stored map[domain.HubID][]journal.Record
	next   map[domain.HubID]uint64
}

// openJournal returns a journal that runs until the test ends.
func openJournal(t testing.TB, conns *streams.Conns, copies int) *journal.Journal {
	t.Helper()
	j, err := journal.New(journal.Config{
		Conn: conns.Cloud, Shards: len(conns.Shards), Replicas: copies, Retention: testRetention,
		Logger: streamstest.Logger(),
	})
	streamstest.Must(t, err)
	streamstest.EventuallyNil(t, "the journal is opened", func() error { return j.Open(t.Context()) })
	streamstest.Run(t, "journal", j.Run)
	return j
}

func newSource(t testing.TB, j *journal.Journal) *source {
	t.Helper()
	writer, err := j.OpenWriter(t.Context(), 0, func() bool { return true })
	streamstest.Must(t, err)
	s := &source{
		Writer: writer, index: journal.NewIndex(0), clock: time.Now().UTC(),
		stored: map[domain.HubID][]journal.Record{}, next: map[domain.HubID]uint64{},
	}
	streamstest.Must(t, s.index.Apply(journal.Commit{Seq: writer.End(), Term: 1}))
	return s
}

// record returns the hub's next record, with a payload of at least that many bytes.
func (s *source) record(hub domain.HubID, size int) journal.Record {
	s.next[hub]++
	seq := s.next[hub]
	s.clock = s.clock.Add(time.Microsecond)
	r := journal.Record{
		Hub: hub, Seq: seq, Time: s.clock, Kind: journal.KindCommand,
		Payload: fmt.Appendf(nil, `{"type":"x","n":%d}%s`, seq, strings.Repeat(" ", size)),
	}
	if seq%3 != 0 {
		r.Kind, r.EpochID, r.OrgID = journal.KindHubEvent, domain.NewEpochID(0xa), "org"
		r.OwnLog, r.Through = "log-1", seq
	}
	if seq%12 == 0 {
		r.Kind, r.EpochID, r.OrgID = journal.KindState, domain.NewEpochID(0xa), "org"
	}
	if seq%5 == 1 && r.Kind.IsEvent() {
		r.Kind, r.Connection = journal.KindCloudEvent, "connection"
	}
	s.stored[hub] = append(s.stored[hub], r)
	return r
}

// fixture is a broker with a journal, and a group of views that can be stopped and started again.
type fixture struct {
	testing.TB
	*source
	broker  *streamstest.Broker
	conns   *streams.Conns
	journal *journal.Journal
	cfg     Config
	// own, if not nil, are the connections of the Views.
	own  *streams.Conns
	hook func(step string)

	*group
	stop func()
}

func newFixture(t testing.TB) *fixture {
	t.Helper()
	f := &fixture{TB: t, broker: streamstest.New(t)}
	f.conns = f.broker.Connect(t)
	f.journal = openJournal(t, f.conns, 1)
	f.source = newSource(t, f.journal)
	return f
}

// commit stores one record for each of the hubs given, in that order.
func (f *fixture) commit(hubs ...domain.HubID) journal.Commit {
	f.Helper()
	return f.commitSized(0, hubs...)
}

// commitSized is commit with payloads of at least that many bytes.
func (f *fixture) commitSized(size int, hubs ...domain.HubID) journal.Commit {
	f.Helper()
	records := make([]journal.Record, len(hubs))
	for i, hub := range hubs {
		records[i] = f.record(hub, size)
	}
	c, err := f.Commit(f.Context(), records, f.index.Tip)
	if err == nil {
		err = f.index.Apply(c)
	}
	streamstest.Must(f, err)
	for _, r := range c.Records {
		for i := range f.stored[r.Hub] {
			if stored := &f.stored[r.Hub][i]; stored.Seq == r.Seq {
				stored.Events = r.Events
			}
		}
	}
	return c
}

// start starts Views that have nothing to write of the journal so far.
func (f *fixture) start() {
	f.Helper()
	f.followed()
	cfg := f.cfg
	cfg.Conns, cfg.Journal = f.conns, f.journal
	if f.own != nil {
		cfg.Conns = f.own
	}
	cfg.Retention, cfg.Logger = testRetention, streamstest.Logger()
	if cfg.IsReleased == nil {
		cfg.IsReleased = notReleased
	}
	v, err := New(cfg)
	streamstest.Must(f, err)
	v.hook = f.hook
	stop := streamstest.Run(f, "views", func(ctx context.Context) error { return v.Run(ctx, 0) })
	streamstest.Eventually(f, "the views are written", func() bool { return v.groups[0].Load() != nil })
	f.group, f.stop = v.groups[0].Load(), stop
}

// followed waits until the journal's index has every commit.
func (f *fixture) followed() {
	f.Helper()
	streamstest.Eventually(f, "the journal is followed", func() bool {
		return f.journal.Position(0) >= f.End()
	})
}

// flush waits until the views have everything. The group is f's from then on.
func (f *fixture) flush() {
	f.Helper()
	f.followed()
	g := f.group
	g.hurried.Add(1)
	defer g.hurried.Add(-1)
	streamstest.EventuallyNil(f, "the views are written", func() error {
		g.signalShards()
		if g.follower.Position() < f.End() {
			return fmt.Errorf("the views follow up to commit %d of %d", g.follower.Position(), f.End())
		}
		g.backlog.mu.Lock()
		bytes := g.backlog.bytes
		g.backlog.mu.Unlock()
		if bytes > 0 {
			return fmt.Errorf("%d bytes wait", bytes)
		}
		for _, s := range g.own() {
			s.mu.Lock()
			defer s.mu.Unlock()
			for id, v := range s.hubs {
				if v.repairing {
					return fmt.Errorf("%s is being repaired", id)
				}
			}
		}
		return nil
	})
}

func (f *fixture) js(hub domain.HubID) jetstream.JetStream {
	f.Helper()
	return streamstest.JetStream(f, f.nc(hub))
}

func (f *fixture) nc(hub domain.HubID) *nats.Conn {
	return f.conns.Shards[streams.ShardOf(hub, len(f.conns.Shards))]
}

// state returns the state of a hub's stream.
func (f *fixture) state(hub domain.HubID) *jetstream.StreamInfo {
	f.Helper()
	info, err := jsapi.New(f.nc(hub)).Info(f.Context(), streams.HubStream(hub))
	streamstest.Must(f, err)
	return info
}

// awaitEnd waits until the view of a hub ends with the log, and returns its state.
func (f *fixture) awaitEnd(hub domain.HubID) (s jetstream.StreamState) {
	f.Helper()
	tip, _ := f.index.Tip(hub)
	streamstest.EventuallyNil(f, "the view of "+string(hub)+" is complete", func() error {
		info, err := jsapi.New(f.nc(hub)).Info(f.Context(), streams.HubStream(hub))
		if err != nil {
			return err
		}
		// In a cluster, a copy that is to be removed may still answer for a moment.
		if s = info.State; s.LastSeq != tip.Seq {
			return fmt.Errorf("it ends at %d, want %d", s.LastSeq, tip.Seq)
		}
		return nil
	})
	return s
}

// checkAll is check for views with all records.
func (f *fixture) checkAll(hubs ...domain.HubID) {
	f.Helper()
	for _, id := range hubs {
		f.check(id, 1)
	}
}

// check waits until a hub's stream is complete and compares it with the journal: it must have
// every record that the journal has, from the sequence first on.
func (f *fixture) check(hub domain.HubID, first uint64) {
	f.Helper()
	if s := f.awaitEnd(hub); s.FirstSeq != first || s.NumDeleted > 0 {
		f.Fatalf("view of %s: has %d to %d with %d gaps, want it from %d on without",
			hub, s.FirstSeq, s.LastSeq, s.NumDeleted, first)
	}
	getter, err := jsapi.New(f.nc(hub)).NewBatchGetter(1000)
	streamstest.Must(f, err)
	defer getter.Close()
	records := f.stored[hub]
	for len(records) > 0 && records[0].Seq < first {
		records = records[1:]
	}
	for len(records) > 0 {
		var found []jsapi.Message
		streamstest.EventuallyNil(f, "records are read", func() error {
			err := getter.Request(jsapi.BatchRequest{
				Stream: streams.HubStream(hub), From: records[0].Seq, Messages: 1000,
			})
			if err == nil {
				found, err = getter.Collect(f.Context())
			}
			if err != nil || len(found) == 0 {
				return fmt.Errorf("%d of %s: got %d messages, %w", records[0].Seq, hub, len(found), err)
			}
			return nil
		})
		for i := range found {
			f.checkMessage(&found[i], &records[i])
		}
		records = records[len(found):]
	}
}

// checkMessage compares a message of a view with the record that it must be of.
func (f *fixture) checkMessage(got *jsapi.Message, r *journal.Record) {
	f.Helper()
	want := map[string]string{HeaderTime: FormatTime(r.Time)}
	if r.Kind.IsEvent() {
		want[HeaderEpoch] = r.EpochID.String()
		want[HeaderOrg] = r.OrgID
		want[HeaderOwnLog] = r.OwnLog
		want[HeaderThrough] = fmt.Sprint(r.Through)
		want[HeaderEvents] = fmt.Sprint(r.Events)
		if r.Connection != "" {
			want[HeaderConnection] = r.Connection
		}
	}
	body := r.Payload
	if r.Kind == journal.KindState {
		want[HeaderEpoch] = r.EpochID.String()
		want[HeaderOrg] = r.OrgID
		want[HeaderState] = FormatState(r.Payload)
		body = []byte(StateBody)
	}
	headers := map[string]string{}
	for name := range got.Header {
		if strings.HasPrefix(name, "Hubcloud-") {
			headers[name] = got.Header.Get(name)
		}
	}
	subject := jsapi.Field(got.Header, jsapi.HeaderSubject)
	if got.Sequence != r.Seq || subject != r.Kind.Subject(r.Hub) ||
		!bytes.Equal(got.Data, body) || !maps.Equal(headers, want) {
		f.Fatalf("message of %s: got %d %s %q %v, want %d %s %q %v", r.Hub, got.Sequence,
			subject, got.Data, headers, r.Seq, r.Kind.Subject(r.Hub), body, want)
	}
}

// value returns the value of a metric.
func (f *fixture) value(c prometheus.Collector) int { return int(testutil.ToFloat64(c)) }

// hub returns the n-th of the hubs of a test.
func hub(n int) domain.HubID { return domain.HubID(fmt.Sprintf("hub-aaaa-aaaa-%04d", n)) }

// hubs returns n hubs.
func hubs(n int) []domain.HubID {
	all := make([]domain.HubID, n)
	for i := range all {
		all[i] = hub(i)
	}
	return all
}
