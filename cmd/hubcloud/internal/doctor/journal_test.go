package doctor

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"hubcloud/domain"
	"hubcloud/streams/journal"
	"hubcloud/streams/streamstest"
	"hubcloud/streams/views/viewstest"
)

// The doctor reports a journal that does not exist, one that is written, and one that no replica
// writes any more.
func TestJournal(t *testing.T) {
	t.Parallel()
	conns := streamstest.Start(t)
	expect := func(want Verdict, texts ...string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		service := Service{Conns: conns, Journals: 1, Metrics: prometheus.NewRegistry()}
		f := newFindings()
		checkJournal(ctx, service.visit(ctx, limits()), f)
		got := f.component("journal")
		if got.Verdict != want {
			t.Errorf("journal is %+v, want %s", got, want)
		}
		for _, text := range texts {
			if !strings.Contains(got.Detail, text) {
				t.Errorf("journal is %+v, want %q in the detail", got, text)
			}
		}
	}
	expect(Wrong, "journal 0 is missing")

	const hub = domain.HubID("hub-aaaa-aaaa-aaaa")
	router, stop := viewstest.Open(t, conns, time.Hour)
	last, err := router.Append(t.Context(), hub, 0, []journal.Record{{
		Hub: hub, Kind: journal.KindHubEvent, EpochID: domain.NewEpochID(1),
		Payload: []byte(`{"type":"t"}`),
	}})
	streamstest.Must(t, err)
	viewstest.Await(t, conns, hub, last)
	expect(OK, "journal 0 ends at commit 2", "its writer answers", "room for")
	stop()
	expect(Wrong, "no replica writes journal 0")
}
