package ingest_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"hubcloud/domain"
	"hubcloud/hubbridge/ingest"
	"hubcloud/streams/streamstest"
)

const faulty domain.HubID = "hub-7k2m-q4xd-93ta"

// testRegistry is a Registry with a clock that the test sets.
type testRegistry struct {
	*ingest.FaultRegistry
	t       *testing.T
	now     time.Time
	log     bytes.Buffer
	metrics *prometheus.Registry
}

func newTestRegistry(t *testing.T) *testRegistry {
	r := &testRegistry{t: t, now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), metrics: prometheus.NewRegistry()}
	r.FaultRegistry = ingest.NewFaults(ingest.FaultConfig{
		Now:     func() time.Time { return r.now },
		Logger:  slog.New(slog.NewTextHandler(&r.log, nil)),
		Metrics: r.metrics,
	})
	return r
}

// pass lets time pass, a tick at a time.
func (r *testRegistry) pass(d time.Duration) {
	for end := r.now.Add(d); r.now.Before(end); {
		r.now = r.now.Add(5 * time.Second)
		r.Check()
	}
}

// want fails the test unless the hub has exactly the faults of these reasons.
func (r *testRegistry) want(what string, reasons ...ingest.FaultReason) {
	r.t.Helper()
	var got []ingest.FaultReason
	for _, f := range r.Faults(func(h domain.HubID) bool { return h == faulty }) {
		got = append(got, f.Reason)
	}
	if fmt.Sprint(got) != fmt.Sprint(reasons) {
		r.t.Errorf("%s: got the faults %v, want %v", what, got, reasons)
	}
}

func TestNoHello(t *testing.T) {
	t.Parallel()
	r := newTestRegistry(t)
	r.Connected(faulty)
	r.pass(55 * time.Second)
	r.want("55 s after the connection")
	r.pass(10 * time.Second)
	r.want("65 s after the connection", ingest.FaultNoHello)
	r.Hello(faulty)
	r.want("after the hello")
	r.pass(5 * time.Minute)
	r.want("long after the hello")
}

func TestNoProgress(t *testing.T) {
	t.Parallel()
	r := newTestRegistry(t)
	r.Behind(faulty, 40, 42, 0)
	r.pass(40 * time.Second)
	r.want("after 40 s")
	r.Behind(faulty, 40, 45, 43) // the same gap: the wait goes on
	r.pass(10 * time.Second)
	r.want("after 50 s", ingest.FaultNoProgress)
	fault := r.Faults(func(domain.HubID) bool { return true })[0]
	if fault.Detail != "sends from 43 again, although 41 is the next number" {
		t.Errorf("got detail %q", fault.Detail)
	}
	r.Behind(faulty, 41, 45, 0)
	r.want("after one more event is stored")
	r.pass(40 * time.Second)
	r.Postpone(faulty)
	r.pass(40 * time.Second)
	r.want("while the cloud cannot store")
	r.pass(10 * time.Second)
	r.want("after it can", ingest.FaultNoProgress)
	r.Disconnected(faulty)
	r.want("while the hub is offline")
	r.Behind(faulty, 41, 45, 0)
	r.CaughtUp(faulty)
	r.pass(5 * time.Minute)
	r.want("after all events are stored")
}

func TestActsEndWhenTheyAreNotRepeated(t *testing.T) {
	t.Parallel()
	r := newTestRegistry(t)
	r.Report(faulty, ingest.FaultMalformedEvents, "event 3: time")
	r.pass(9 * time.Minute)
	r.Report(faulty, ingest.FaultMalformedEvents, "event 9: data")
	r.pass(9 * time.Minute)
	r.want("9 minutes after the second", ingest.FaultMalformedEvents)
	fault := r.Faults(func(domain.HubID) bool { return true })[0]
	if fault.Count != 2 || fault.Detail != "event 9: data" || fault.Last.Equal(fault.Since) {
		t.Errorf("got %+v, want two, and the last evidence", fault)
	}
	r.Disconnected(faulty)
	r.want("offline", ingest.FaultMalformedEvents)
	r.pass(2 * time.Minute)
	r.want("11 minutes after the second")
	if log := r.log.String(); strings.Count(log, "hub breaks the protocol") != 1 ||
		strings.Count(log, "hub follows the protocol again") != 1 {
		t.Errorf("got the log %s, want a line for the beginning and one for the end", log)
	}
}

// QoS 2 is also a violation of what the broker accepts; only the more exact fault is kept.
func TestQoS2IsMoreExact(t *testing.T) {
	t.Parallel()
	r := newTestRegistry(t)
	r.Report(faulty, ingest.FaultMQTTViolation, "x")
	r.want("a violation", ingest.FaultMQTTViolation)
	r.Report(faulty, ingest.FaultQoS2, "x")
	r.want("QoS 2", ingest.FaultQoS2)
	r.Report(faulty, ingest.FaultMQTTViolation, "x")
	r.want("a violation again", ingest.FaultQoS2)
}

// What hubs send into details is bounded and printable, and a registry keeps a bounded number of
// hubs, with a bounded number of log lines.
func TestBounds(t *testing.T) {
	t.Parallel()
	r := newTestRegistry(t)
	r.Report(faulty, ingest.FaultForeignTopic, "a\x1b[31m\n\u202e"+strings.Repeat("é", 500))
	fault := r.Faults(func(domain.HubID) bool { return true })[0]
	if len(fault.Detail) > 200 || strings.ContainsAny(fault.Detail, "\x1b\n\u202e") {
		t.Errorf("got detail %q, want at most 200 printable bytes", fault.Detail)
	}
	for i := range 3000 {
		other := domain.HubID(fmt.Sprintf("hub-%04d-q4xd-93ta", i))
		r.Report(other, ingest.FaultMalformedEvents, "x")
	}
	all := r.Faults(func(domain.HubID) bool { return true })
	if len(all) != 1000 {
		t.Errorf("got %d hubs, want at most 1000", len(all))
	}
	if lines := strings.Count(r.log.String(), "\n"); lines > 25 {
		t.Errorf("got %d log lines at one moment, want a bounded number", lines)
	}
	r.Forget(func(h domain.HubID) bool { return h != faulty })
	r.want("after the others moved away", ingest.FaultForeignTopic)
	for reason, want := range map[string]float64{"foreign_topic": 1, "malformed_events": 0} {
		got := streamstest.MetricValue(t, r.metrics, "hubcloud_hubbridge_faulty_hubs", "reason", reason)
		if got != want {
			t.Errorf("faulty hubs counted with %s: got %v, want %v", reason, got, want)
		}
	}
}

// A Reader gets the faults from the replica that serves the shard, and an error if there is none.
func TestReader(t *testing.T) {
	t.Parallel()
	conns := streamstest.New(t).Connect(t)
	reader := ingest.NewFaultReader(conns)
	if _, err := reader.Hub(t.Context(), faulty); err == nil {
		t.Error("got no error although nothing serves the shard")
	}
	r := newTestRegistry(t)
	r.Report(faulty, ingest.FaultQoS2, "hub/x/hello")
	for shard := range conns.Shards {
		stop, err := r.Serve(conns, shard)
		streamstest.Must(t, err)
		t.Cleanup(stop)
	}
	streamstest.Must(t, conns.Cloud.Flush())
	faults, err := reader.Hub(t.Context(), faulty)
	if err != nil || len(faults) != 1 || faults[0].Detail != "hub/x/hello" || !faults[0].Since.Equal(r.now) {
		t.Errorf("got %+v, %v, want the fault", faults, err)
	}
	if faults, err := reader.Hub(t.Context(), "hub-aaaa-bbbb-cccc"); err != nil || len(faults) > 0 {
		t.Errorf("a good hub: got %+v, %v, want none", faults, err)
	}
	for i := range 500 {
		r.Report(domain.HubID(fmt.Sprintf("hub-%04d-q4xd-93ta", i)), ingest.FaultQoS2, "x")
	}
	all, left, err := reader.All(t.Context())
	if err != nil || len(all)+left != 501 || len(all) > 200*len(conns.Shards) {
		t.Errorf("got %d faults and %d left out, %v, want 501 in all", len(all), left, err)
	}
}
