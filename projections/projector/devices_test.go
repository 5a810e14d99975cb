package projector_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"reflect"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"hubcloud/domain"
	"hubcloud/projections/devicestate"
	"hubcloud/projections/projectionstest"
	"hubcloud/projections/projector"
	"hubcloud/projections/readmodel"
	"hubcloud/projections/schema"
	"hubcloud/streams"
	"hubcloud/streams/journal"
	"hubcloud/streams/streamstest"
)

// env is a journal that the test writes, with a store of read models.
type env struct {
	*projectionstest.Env
	store    *readmodel.Store
	writer   *journal.Writer
	index    *journal.Index
	at       time.Time
	seqs     map[domain.HubID]uint64
	expected map[domain.HubID]*devicestate.Hub
}

func newEnv(t *testing.T) *env {
	t.Helper()
	e := &env{
		Env: projectionstest.New(t), at: time.Now().UTC(), seqs: map[domain.HubID]uint64{},
		expected: map[domain.HubID]*devicestate.Hub{},
	}
	e.AddSite(t, org, 1)
	e.store = e.OpenStore(t)
	e.openJournal(t)
	return e
}

func (e *env) openJournal(t *testing.T) {
	t.Helper()
	var err error
	e.Journal, err = journal.New(journal.Config{Conn: e.Conns.Cloud, Retention: 25 * time.Hour})
	streamstest.Must(t, err)
	streamstest.Must(t, e.Journal.Declare(t.Context()))
	if e.writer, err = e.Journal.OpenWriter(
		t.Context(), 0, func() bool { return true },
	); err != nil {
		t.Fatal(err)
	}
	e.index = journal.NewIndex(0)
	e.index.Skip(e.writer.End())
}

// addHub adds hub n to an organization.
func (e *env) addHub(t *testing.T, org string, n int) domain.HubID {
	t.Helper()
	e.Append(t, streams.HubSubject(hubID(n)),
		projectionstest.HubAdded(org, n, 1))
	return hubID(n)
}

// project runs a projector until the test ends or stop is called.
func (e *env) project(t *testing.T, change func(*projector.Config)) (stop func()) {
	t.Helper()
	cfg := e.ProjectorConfig(t, e.store)
	cfg.Logger = slog.New(slog.DiscardHandler)
	if change != nil {
		change(&cfg)
	}
	return projectionstest.RunProjector(t, cfg).Stop
}

// event returns an event of a hub that is to be committed.
func event(n int, typ string, device int64, at time.Time, data string) journal.Record {
	hub := hubID(n)
	return journal.Record{
		Hub: hub, Kind: journal.KindHubEvent, EpochID: domain.NewEpochID(uint32(n)), OrgID: org,
		Payload: fmt.Appendf(nil,
			`{"type":%q,"hub_id":%q,"device_id":%d,"time":%q,"clock_trusted":true,"data":%s}`,
			typ, hub, device, domain.FormatTime(at), data),
	}
}

func observed(n int, device int64, at time.Time, key, value string) journal.Record {
	return event(n, "channel.observed", device, at,
		fmt.Sprintf(`{"key":%q,"endpoint":0,"value":%s}`, key, value))
}

// commit commits records, and folds them into the expected states.
func (e *env) commit(t *testing.T, records ...journal.Record) {
	t.Helper()
	for i := range records {
		r := &records[i]
		e.at = e.at.Add(time.Microsecond)
		e.seqs[r.Hub]++
		r.Seq, r.Time = e.seqs[r.Hub], e.at
		if e.expected[r.Hub] == nil {
			e.expected[r.Hub] = new(devicestate.Hub)
		}
		entry := devicestate.Entry{Seq: r.Seq, Time: r.Time, EpochID: r.EpochID}
		if r.Kind == journal.KindState {
			entry.State = r.Payload
		} else {
			entry.Event = r.Payload
		}
		streamstest.Must(t, e.expected[r.Hub].Fold(entry))
	}
	c, err := e.writer.Commit(t.Context(), records, e.index.Tip)
	streamstest.Must(t, err)
	streamstest.Must(t, e.index.Apply(c))
}

// states returns the states that a filter selects; nil while the tables are not complete.
func (e *env) states(
	t *testing.T, org string, filter domain.StateFilter,
) []domain.ReportedState {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	page, err := e.store.States(ctx, domain.Reach{OrgID: org}, filter, 1000, domain.StatePosition{})
	if domain.CodeOf(err) == domain.CodeServiceUnavailable {
		return nil
	}
	streamstest.Must(t, err)
	return page.Data
}

// same reports whether the tables have what is expected.
func (e *env) same(t *testing.T) bool {
	t.Helper()
	got := map[domain.HubID]int{}
	for _, s := range e.states(t, org, domain.StateFilter{}) {
		got[s.HubID]++
		d := e.expected[s.HubID].Device(s.DeviceID)
		if d == nil {
			return false
		}
		c := d.Channel(s.Channel.Key, s.Channel.Endpoint)
		if c == nil || !slices.EqualFunc(s.Standing, c.Standing, equalAlarms) {
			return false
		}
		if string(c.Value) != string(s.Channel.Value) || c.Status != s.Channel.Status ||
			string(c.Desired) != string(s.Channel.Desired) || c.Available != s.Channel.Available ||
			s.Channel.ObservedAt != nil && *s.Channel.ObservedAt != domain.FormatTime(c.ObservedAt) {
			return false
		}
	}
	want := map[domain.HubID]int{}
	for id, h := range e.expected {
		for _, d := range h.Devices {
			if len(d.Channels) > 0 {
				want[id] += len(d.Channels)
			}
		}
	}
	return reflect.DeepEqual(got, want)
}

func equalAlarms(a, b domain.StandingAlarm) bool { return reflect.DeepEqual(a, b) }

// await waits until the tables have what is expected.
func (e *env) await(t *testing.T, when string) {
	t.Helper()
	streamstest.Eventually(t, when, func() bool { return e.same(t) })
}

// Random events reach the tables whatever is interrupted: the projector is stopped and replaced at
// random moments, keeps few states in memory, writes one hub in a round, and two processes compete.
func TestStatesSurviveInterruptions(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	for n := range 5 {
		e.addHub(t, org, n+1)
	}
	small := func(cfg *projector.Config) { cfg.MaxChannels, cfg.MaxRows = 3, 1 }
	stop := e.project(t, small)
	e.project(t, small) // stands by, and takes over at the first stop
	types := []string{"channel.observed", "channel.observed", "channel.desired", "channel.observed"}
	for round := range 40 {
		var records []journal.Record
		for range 1 + rand.IntN(20) {
			n, device := 1+rand.IntN(5), rand.Int64N(4)
			data := fmt.Sprintf(`{"key":"k%d","endpoint":0,"value":%d}`, rand.IntN(3), rand.IntN(9))
			at := e.at.Add(time.Duration(round) * time.Second)
			switch rand.IntN(12) {
			case 0:
				records = append(records, event(n, "device.forgotten", device, at, `{"name":""}`))
			case 1:
				records = append(records, event(n, "device.unavailable", device, at, `{}`))
			case 2:
				records = append(records, event(n, "device.updated", device, at,
					`{"name":"new","removed_channels":[{"key":"k1","endpoint":0}]}`))
			default:
				records = append(records, event(n, types[rand.IntN(4)], device, at, data))
			}
		}
		e.commit(t, records...)
		if round%10 == 3 {
			e.await(t, "states between interruptions")
		}
		if round%10 == 5 {
			stop()
			stop = e.project(t, small)
		}
	}
	e.await(t, "states after interruptions")
}

// A hub that is released and added by another organization must not show what it reported before.
func TestStatesOfAFormerOwner(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	hub := e.addHub(t, org, 1)
	e.project(t, nil)
	e.commit(t, observed(1, 1, e.at, "lock", "true"))
	e.await(t, "the states of the first organization")
	subject := streams.HubSubject(hub)
	e.Append(t, subject, domain.HubReleased{HubID: hub, OrgID: org})
	seq := e.Append(t, subject, domain.HubAdded{
		HubID: hub, OrgID: other, SiteID: siteID(1),
		EpochID: domain.NewEpochID(99), After: 1,
	})
	streamstest.Must(t, e.store.WaitFor(t.Context(), seq))
	for _, o := range []string{org, other} {
		if got := e.states(t, o, domain.StateFilter{}); len(got) > 0 {
			t.Errorf("states of %s after the hub changed hands: %+v, want none", o, got)
		}
	}
	r := observed(1, 1, e.at, "lock", "false")
	r.EpochID = domain.NewEpochID(99)
	e.commit(t, r)
	streamstest.Eventually(t, "the states of the second organization", func() bool {
		got := e.states(t, other, domain.StateFilter{})
		return len(got) == 1 && string(got[0].Channel.Value) == "false"
	})
	if got := e.states(t, org, domain.StateFilter{}); len(got) > 0 {
		t.Errorf("states of the first organization: %+v, want none", got)
	}
}

// A projector whose checkpoint is from another journal, as after a restore from a backup, builds
// the states again.
func TestStatesOfAnotherJournal(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.addHub(t, org, 1)
	stop := e.project(t, nil)
	e.commit(t, observed(1, 1, e.at, "lock", "true"), observed(1, 2, e.at, "lock", "true"))
	e.await(t, "states of the first journal")
	stop()
	js, err := e.Conns.Cloud.JetStream()
	streamstest.Must(t, err)
	streamstest.Must(t, js.DeleteStream("JOURNAL_0"))
	clear(e.seqs)
	clear(e.expected)
	e.openJournal(t)
	e.commit(t, observed(1, 3, e.at, "lock", "true"))
	e.project(t, nil)
	e.await(t, "states of the second journal")
}

// Regression: the states of hubs that organizations have were deleted, and did not come back, when
// the directory's projection stood for ten minutes.
func TestStatesStayWhileTheDirectoryStands(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.at = e.at.Add(-time.Hour) // nothing was reported lately
	e.addHub(t, org, 1)
	var swept atomic.Int64
	e.project(t, func(c *projector.Config) {
		c.SweepInterval = 20 * time.Millisecond
		c.Directory = counted{e.Directory, &swept}
	})
	projectionstest.Await(t, e.store, e.Head(t))
	stops := e.Control(t)
	streamstest.Must(t, stops.Stop(t.Context(), []string{schema.Directory}, ""))
	two := e.addHub(t, org, 2)
	e.commit(t, observed(1, 1, e.at, "lock", "true"), observed(2, 1, e.at, "lock", "true"))
	nobodys := observed(3, 1, e.at, "lock", "true") // a hub that no organization has
	e.commit(t, nobodys)
	delete(e.expected, nobodys.Hub)
	rows := func() int { return e.RowCount(t, e.store.Schema(), "reported_hubs") }
	streamstest.Eventually(t, "the states", func() bool { return rows() == 3 })
	before := swept.Load()
	streamstest.Eventually(t, "searches", func() bool { return swept.Load() > before+3 })
	if got := rows(); got != 3 {
		t.Fatalf("hubs with states while the directory stands: %d, want 3", got)
	}
	streamstest.Must(t, stops.Resume(t.Context(), []string{schema.Directory}))
	streamstest.Eventually(
		t, "the states of nobody's hub are deleted", func() bool { return rows() == 2 },
	)
	e.await(t, "the states of the organization's hubs")
	if got := e.states(t, org, domain.StateFilter{HubID: &two}); len(got) != 1 {
		t.Errorf("states of the hub that was added: %+v, want one", got)
	}
}

// counted is a directory that counts how often its end is read.
type counted struct {
	projector.Directory
	heads *atomic.Int64
}

func (c counted) Head(ctx context.Context, seen uint64) (uint64, error) {
	c.heads.Add(1)
	return c.Directory.Head(ctx, seen)
}

// Regression: a journal that was idle for its retention put every hub in doubt, and raised the
// alert about commits that expired unread, though all had been read.
func TestIdleJournalExpires(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.addHub(t, org, 1)
	registry := prometheus.NewPedanticRegistry()
	journals, err := journal.New(journal.Config{
		Conn: e.Conns.Cloud, Retention: 25 * time.Hour, Metrics: registry,
	})
	streamstest.Must(t, err)
	e.Journal = journals
	stop := e.project(t, nil)
	e.commit(t, read(t, 1, 0, "false"), observed(1, 1, e.at, "lock", "true"))
	certain := func() bool {
		got := e.states(t, org, domain.StateFilter{})
		return len(got) == 1 && string(got[0].Channel.Value) == "true" && got[0].Certain
	}
	streamstest.Eventually(t, "a certain state", certain)
	stop()
	short, err := journal.New(journal.Config{
		Conn: e.Conns.Cloud, Retention: time.Second, Reserve: time.Second,
	})
	streamstest.Must(t, err)
	streamstest.Must(t, short.Declare(t.Context()))
	last := e.index.Position()
	streamstest.Eventually(t, "the events have expired", func() bool {
		_, kept, err := e.Journal.StoredAt(t.Context(), 0, last)
		return err == nil && !kept
	})
	streamstest.Must(t, journals.Declare(t.Context()))
	e.project(t, nil)
	e.commit(t, observed(1, 1, e.at, "lock", "false"), observed(1, 1, e.at, "lock", "true"))
	e.await(t, "the states after the journal was idle")
	if !certain() {
		t.Errorf("states are %+v, want certain ones", e.states(t, org, domain.StateFilter{}))
	}
	if n := streamstest.MetricValue(t, registry, "hubcloud_journal_missing_total"); n != 0 {
		t.Errorf("%v commits count as expired unread, want none", n)
	}
}

// read returns the record of a complete read of a hub with a lock.
func read(t *testing.T, n int, after uint64, value string) journal.Record {
	t.Helper()
	records, err := devicestate.MarshalRead(devicestate.Read{
		After: after, EpochID: domain.NewEpochID(uint32(n)), Complete: true, All: []int64{1},
		Devices: []devicestate.ReadDevice{{ID: 1, Channels: []domain.Channel{{
			Key: "lock", Kind: "lock", Available: true, Value: []byte(value),
			Status: domain.ChannelSynchronized,
		}}}},
	})
	streamstest.Must(t, err)
	return journal.Record{
		Hub: hubID(n), Kind: journal.KindState,
		EpochID: domain.NewEpochID(uint32(n)), OrgID: org, Payload: records[0],
	}
}
