package doctor

import (
	"context"
	"strings"
	"testing"
	"time"

	"hubcloud/cmd/hubcloud/internal/installation"
	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/journal"
	"hubcloud/streams/logwriter/logwritertest"
	"hubcloud/streams/streamstest"
)

const journaledHub = domain.HubID("hub-aaaa-aaaa-aaaa")

// checkJournals returns the component of the journals of a broker.
func checkJournals(t *testing.T, conns *streams.Conns) Component {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	target := newTarget(ctx, Config{Limits: limits()})
	target.broker = func() (*streams.Conns, error) { return conns, nil }
	f := newFindings()
	checkJournal(ctx, target, f)
	return f.component("journal")
}

// expectJournal compares the component of the journals with a verdict and texts of its detail.
func expectJournal(t *testing.T, conns *streams.Conns, want Verdict, texts ...string) {
	t.Helper()
	got := checkJournals(t, conns)
	if got.Verdict != want {
		t.Errorf("journal is %+v, want %s", got, want)
	}
	for _, text := range texts {
		if !strings.Contains(got.Detail, text) {
			t.Errorf("journal is %+v, want %q in the detail", got, text)
		}
	}
}

// settle makes the installation of a broker with one journal, which is not created yet.
func settle(t *testing.T, conns *streams.Conns) {
	t.Helper()
	buckets, err := streams.OpenBuckets(t.Context(), conns, 1)
	if err != nil {
		t.Fatal(err)
	}
	_, err = installation.Open(t.Context(), conns.Cloud, buckets.Installation, "live", 1)
	if err != nil {
		t.Fatal(err)
	}
}

func record(seq uint64, at time.Time) journal.Record {
	return journal.Record{
		Hub: journaledHub, Seq: seq, Time: at, Kind: journal.KindHubEvent,
		EpochID: domain.NewEpochID(1), Payload: []byte(`{"type":"t"}`),
	}
}

// The doctor reports a journal that does not exist, one that is written, and one that no replica
// writes any more.
func TestJournal(t *testing.T) {
	t.Parallel()
	conns := streamstest.Start(t)
	expectJournal(t, conns, Skipped, "there is none yet")
	settle(t, conns)
	expectJournal(t, conns, Wrong, "journal 0 is missing")

	router, stop := logwritertest.Open(t, conns, time.Hour)
	records := []journal.Record{record(0, time.Time{})}
	last, err := router.Append(t.Context(), journaledHub, 0, records)
	if err != nil {
		t.Fatal(err)
	}
	if err := router.AwaitView(t.Context(), journaledHub, last); err != nil {
		t.Fatal(err)
	}
	expectJournal(
		t, conns, OK, "journal 0 ends at commit 2", "its writer answers", "up to commit 0",
		"room for",
	)
	stop()
	expectJournal(t, conns, Wrong, "no replica writes journal 0")
}

// The doctor reports hub logs whose stream lacks old records of the journal, and commits that have
// not been written for long. It does not report records that were just stored.
func TestViewsBehindTheJournal(t *testing.T) {
	t.Parallel()
	conns := streamstest.Start(t)
	settle(t, conns)
	journals, err := journal.New(journal.Config{Conn: conns.Cloud, Retention: 2 * time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	if err := journals.Declare(t.Context()); err != nil {
		t.Fatal(err)
	}
	writer, err := journals.OpenWriter(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	at := time.Now().Add(-30 * time.Minute)
	_, err = writer.Commit(
		t.Context(),
		[]journal.Record{
			record(1, at), record(2, at.Add(1)), record(3, time.Now()),
		},
		func(domain.HubID) (journal.Tip, bool) { return journal.Tip{}, false },
	)
	if err != nil {
		t.Fatal(err)
	}
	expectJournal(
		t, conns, Wrong, "no replica writes journal 0",
		"the streams of 1 hub logs lack records of the journal: "+string(journaledHub)+
			" (2 records, since 30 min)",
		"newer commits have not been written to disk for 30 min",
	)
}
