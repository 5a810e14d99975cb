package hubviews

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
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
	"hubcloud/streams/logformat"
	"hubcloud/streams/streamstest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, streamstest.Leaks()...) }

const testRetention = time.Hour

// memoryJournal is a journal in memory.
type memoryJournal struct {
	guard   sync.Mutex
	commits []journal.Commit
	tips    map[domain.HubID]journal.Tip
	records map[domain.HubID][]journal.Record
	clock   time.Time
}

func newMemoryJournal() *memoryJournal {
	return &memoryJournal{
		tips: map[domain.HubID]journal.Tip{}, records: map[domain.HubID][]journal.Record{},
		clock: time.Now().UTC(),
	}
}

func (j *memoryJournal) Tip(hub domain.HubID) (journal.Tip, bool) {
	j.guard.Lock()
	defer j.guard.Unlock()
	tip, ok := j.tips[hub]
	return tip, ok
}

func (j *memoryJournal) Tips() iter.Seq2[domain.HubID, journal.Tip] {
	j.guard.Lock()
	defer j.guard.Unlock()
	return maps.All(maps.Clone(j.tips))
}

// pageOfRecords is how many records one read returns.
const pageOfRecords = 100

func (j *memoryJournal) Records(
	_ context.Context, hub domain.HubID, from, to uint64,
) ([]journal.Record, error) {
	j.guard.Lock()
	defer j.guard.Unlock()
	records := j.records[hub]
	first := slices.IndexFunc(records, func(r journal.Record) bool { return r.Seq == from })
	if first < 0 {
		return nil, journal.ErrGone
	}
	last := min(first+int(to-from)+1, first+pageOfRecords, len(records))
	return slices.Clone(records[first:last]), nil
}

func (j *memoryJournal) Oldest(_ context.Context, hub domain.HubID) (uint64, error) {
	j.guard.Lock()
	defer j.guard.Unlock()
	if len(j.records[hub]) == 0 {
		return 0, journal.ErrGone
	}
	return j.records[hub][0].Seq, nil
}

// end returns the sequence of the last commit.
func (j *memoryJournal) end() uint64 {
	j.guard.Lock()
	defer j.guard.Unlock()
	return uint64(len(j.commits))
}

// commit stores one record for each of the hubs given, in that order.
func (j *memoryJournal) commit(hubs ...domain.HubID) journal.Commit {
	return j.commitSized(0, hubs...)
}

// commitSized is commit with payloads of at least that many bytes.
func (j *memoryJournal) commitSized(size int, hubs ...domain.HubID) journal.Commit {
	j.guard.Lock()
	defer j.guard.Unlock()
	c := journal.Commit{Seq: uint64(len(j.commits)) + 1, Term: 1}
	for _, hub := range hubs {
		j.clock = j.clock.Add(time.Microsecond)
		tip := j.tips[hub]
		tip.Seq, tip.Commit, tip.Time = tip.Seq+1, c.Seq, j.clock
		j.tips[hub] = tip
		r := journal.Record{
			Hub: hub, Seq: tip.Seq, Time: j.clock, Kind: journal.KindCommand,
			Payload: fmt.Appendf(nil, `{"type":"x","n":%d}%s`, tip.Seq, strings.Repeat(" ", size)),
		}
		if tip.Seq%3 != 0 {
			r.Kind, r.EpochID, r.OrgID = journal.KindHubEvent, domain.NewEpochID(0xa), "org"
			r.OwnLog, r.Through = "log-1", tip.Seq
		}
		if tip.Seq%5 == 1 && r.Kind.IsEvent() {
			r.Kind, r.Connection = journal.KindCloudEvent, "connection"
		}
		c.Records = append(c.Records, r)
		j.records[hub] = append(j.records[hub], r)
	}
	j.commits = append(j.commits, c)
	return c
}

// begin makes the hub's log begin with a sequence, as if earlier records were written before there
// was a journal.
func (j *memoryJournal) begin(hub domain.HubID, first uint64) {
	j.guard.Lock()
	defer j.guard.Unlock()
	j.tips[hub] = journal.Tip{Seq: first - 1}
}

// setTime moves a hub's records and the clock to another time.
func (j *memoryJournal) setTime(at time.Time) {
	j.guard.Lock()
	defer j.guard.Unlock()
	j.clock = at.UTC()
}

// forget removes the hub's records before a sequence, as if they had expired.
func (j *memoryJournal) forget(hub domain.HubID, before uint64) {
	j.guard.Lock()
	defer j.guard.Unlock()
	j.records[hub] = slices.DeleteFunc(j.records[hub],
		func(r journal.Record) bool { return r.Seq < before })
}

// fixture is a broker with a journal, and Views that can be stopped and started again.
type fixture struct {
	testing.TB
	*memoryJournal
	broker *streamstest.Broker
	conns  *streams.Conns
	bucket jsapi.Bucket
	cfg    Config
	// own, if not nil, are the connections of the Views.
	own  *streams.Conns
	hook func(step string)

	*Views
	stop func()
}

func newFixture(t testing.TB) *fixture {
	t.Helper()
	f := &fixture{TB: t, memoryJournal: newMemoryJournal(), broker: streamstest.New(t)}
	f.conns = f.broker.Connect(t)
	f.bucket = positions(t, f.conns)
	return f
}

func positions(t testing.TB, conns *streams.Conns) jsapi.Bucket {
	t.Helper()
	js, err := jetstream.New(conns.Cloud)
	if err != nil {
		t.Fatal(err)
	}
	const name = "positions"
	if _, err := js.CreateOrUpdateKeyValue(
		t.Context(), jetstream.KeyValueConfig{Bucket: name},
	); err != nil {
		t.Fatal(err)
	}
	return jsapi.NewBucket(conns.Cloud, name)
}

// start starts Views that have nothing to be added of the journal so far.
func (f *fixture) start() {
	f.Helper()
	cfg := f.cfg
	cfg.Conns, cfg.Journal, cfg.Positions = f.conns, f.memoryJournal, f.bucket
	if f.own != nil {
		cfg.Conns = f.own
	}
	cfg.From, cfg.Retention, cfg.Logger = f.end(), testRetention, streamstest.Logger()
	cfg.Metrics = NewMetrics(prometheus.NewRegistry())
	views, err := New(f.Context(), cfg)
	if err != nil {
		f.Fatal(err)
	}
	views.hook = f.hook
	f.Views = views
	f.stop = streamstest.Run(f, "views", views.Run)
}

// write commits one record for each of the hubs and adds the commit.
func (f *fixture) write(hubs ...domain.HubID) {
	f.Helper()
	f.add(f.commit(hubs...))
}

func (f *fixture) add(c journal.Commit) {
	f.Helper()
	ctx, cancel := context.WithTimeout(f.Context(), time.Minute)
	defer cancel()
	if err := f.Add(ctx, c); err != nil {
		f.Fatalf("add commit %d: %v", c.Seq, err)
	}
}

func (f *fixture) flush() {
	f.Helper()
	ctx, cancel := context.WithTimeout(f.Context(), time.Minute)
	defer cancel()
	if err := f.Flush(ctx); err != nil {
		f.Fatalf("flush: %v", err)
	}
}

func (f *fixture) js(hub domain.HubID) jetstream.JetStream {
	f.Helper()
	js, err := jetstream.New(f.nc(hub))
	if err != nil {
		f.Fatal(err)
	}
	return js
}

func (f *fixture) nc(hub domain.HubID) *nats.Conn {
	return f.conns.Shards[streams.ShardOf(hub, len(f.conns.Shards))]
}

// state returns the state of a hub's stream.
func (f *fixture) state(hub domain.HubID) *jetstream.StreamInfo {
	f.Helper()
	info, err := jsapi.New(f.nc(hub)).Info(f.Context(), streams.HubStream(hub))
	if err != nil {
		f.Fatal(err)
	}
	return info
}

// check compares a hub's stream with the journal: it must have every record that the journal has,
// from the sequence first on, and end with the last.
func (f *fixture) check(hub domain.HubID, first uint64) {
	f.Helper()
	info := f.state(hub)
	tip, _ := f.Tip(hub)
	if s := info.State; s.FirstSeq != first || s.LastSeq != tip.Seq || s.NumDeleted > 0 {
		f.Fatalf("view of %s: has %d to %d with %d gaps, want %d to %d without",
			hub, s.FirstSeq, s.LastSeq, s.NumDeleted, first, tip.Seq)
	}
	f.guard.Lock()
	records := slices.Clone(f.records[hub])
	f.guard.Unlock()
	for i := range records {
		if records[i].Seq >= first {
			f.checkMessage(&records[i])
		}
	}
}

// checkMessage compares the message with the sequence of a record with the record.
func (f *fixture) checkMessage(r *journal.Record) {
	f.Helper()
	got, err := jsapi.New(f.nc(r.Hub)).Get(f.Context(), streams.HubStream(r.Hub), r.Seq)
	if err != nil {
		f.Fatalf("get %d of %s: %v", r.Seq, r.Hub, err)
	}
	want := map[string]string{logformat.HeaderTime: logformat.FormatTime(r.Time)}
	if r.Kind.IsEvent() {
		want[logformat.HeaderEpoch] = r.EpochID.String()
		want[logformat.HeaderOrg] = r.OrgID
		want[logformat.HeaderOwnLog] = r.OwnLog
		want[logformat.HeaderThrough] = fmt.Sprint(r.Through)
		if r.Connection != "" {
			want[logformat.HeaderConnection] = r.Connection
		}
	}
	headers := map[string]string{}
	for name := range got.Header {
		if strings.HasPrefix(name, "Hubcloud-") {
			headers[name] = got.Header.Get(name)
		}
	}
	if got.Subject != r.Kind.Subject(r.Hub) || !bytes.Equal(got.Data, r.Payload) ||
		!maps.Equal(headers, want) {
		f.Fatalf("message %d of %s: got %s %q %v, want %s %q %v", r.Seq, r.Hub,
			got.Subject, got.Data, headers, r.Kind.Subject(r.Hub), r.Payload, want)
	}
}

// count returns the value of a metric of the Views that run.
func (f *fixture) count(c prometheus.Collector) int { return int(testutil.ToFloat64(c)) }

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

// logTime returns the time of a stored message.
func logTime(msg *jetstream.RawStreamMsg) (time.Time, bool, error) {
	return logformat.Time(msg.Header)
}
