package httpapi_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"hubcloud/domain"
	"hubcloud/httpapi/response"
	"hubcloud/streams/feed"
	"hubcloud/streams/journal"
	"hubcloud/streams/streamstest"
	"hubcloud/streams/views/viewstest"
)

const hub = domain.HubID("hub-7k2m-q4xd-93ta")

// TestReadFitsIntoWrite reads a log of large events: one read must not return more bytes than a
// stream sends at once, which bounds the memory of a client that stopped reading.
func TestReadFitsIntoWrite(t *testing.T) {
	t.Parallel()
	conns := streamstest.Start(t)
	journals, _ := viewstest.Open(t, conns, time.Hour)
	store, err := feed.New(conns, feed.Config{
		Journal:   journals,
		Retention: time.Hour,
		Epoch: func(domain.HubID) (domain.Epoch, bool) {
			return domain.Epoch{ID: domain.NewEpochID(1)}, true
		},
	})
	streamstest.Must(t, err)
	t.Cleanup(store.Close)
	const count = 50
	records := make([]journal.Record, count)
	for i := range records {
		records[i].Kind, records[i].EpochID = journal.KindHubEvent, domain.NewEpochID(1)
		records[i].Payload = fmt.Appendf(nil, `{"type":"x","data":%q}`, strings.Repeat("x", 3000))
	}
	if _, err := store.Append(t.Context(), hub, 0, records); err != nil {
		t.Fatal(err)
	}
	page, err := store.Page(t.Context(), hub, "", 1)
	streamstest.Must(t, err)
	reader, err := store.Follow(t.Context(), hub, page.Next)
	streamstest.Must(t, err)
	defer reader.Close()
	for read := 1; read < count; {
		events, err := reader.Next(t.Context(), count)
		if err != nil || len(events) == 0 {
			t.Fatalf(
				"Next: got %d events, %v after event %d of %d, want events", len(events), err, read,
				count,
			)
		}
		read += len(events)
		bytes := 0
		for _, e := range events {
			bytes += len(e.Envelope)
		}
		if bytes > response.BatchBytes {
			t.Errorf("Next returned %d bytes of events, want at most %d", bytes, response.BatchBytes)
		}
	}
}
