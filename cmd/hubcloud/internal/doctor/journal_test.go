package doctor

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/journal"
	"hubcloud/streams/streamstest"
	"hubcloud/streams/views/viewstest"
)

const journaledHub = domain.HubID("hub-aaaa-aaaa-aaaa")

// checkJournals returns the component of the journals of a broker.
func checkJournals(t *testing.T, conns *streams.Conns) Component {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	service := Service{Conns: conns, Journals: 1, Metrics: prometheus.NewRegistry()}
	v := service.visit(ctx, limits())
	f := newFindings()
	checkJournal(ctx, v, f)
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
	expectJournal(t, conns, Wrong, "journal 0 is missing")

	router, stop := viewstest.Open(t, conns, time.Hour)
	records := []journal.Record{record(0, time.Time{})}
	last, err := router.Append(t.Context(), journaledHub, 0, records)
	if err != nil {
		t.Fatal(err)
	}
	viewstest.Await(t, conns, journaledHub, last)
	expectJournal(
		t, conns, OK, "journal 0 ends at commit 2", "its writer answers", "room for",
	)
	stop()
	expectJournal(t, conns, Wrong, "no replica writes journal 0")
}
