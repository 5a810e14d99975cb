package feed

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"hubcloud/domain"
	"hubcloud/streams/journal"
)

func TestInvalidAppends(t *testing.T) {
	t.Parallel()
	f := start(t, Config{})
	good := event(1)
	bad := map[string][]journal.Record{
		"no records":              {},
		"too many records":        slices.Repeat([]journal.Record{good}, 1001),
		"record without an epoch": {good, {Payload: good.Payload}},
		"payload that is too big": {
			{
				Payload: []byte(`{"type":"` + strings.Repeat("x", maxPayload) + `"}`),
				EpochID: domain.NewEpochID(0xa),
			},
		},
	}
	for _, payload := range []string{
		"", `{}`, `{"data":{},"type":"x"}`, "{\"type\":\"x\",\n\"data\":{}}", `{"type":"x"`,
		`null`, "{\"type\":\"\xff\"}",
	} {
		bad["payload "+payload] = []journal.Record{
			{Payload: []byte(payload), EpochID: domain.NewEpochID(0xa)},
		}
	}
	for name, records := range bad {
		if _, err := f.Append(t.Context(), hubA, 0, records); err == nil ||
			errors.Is(err, ErrConflict) ||
			errors.Is(err, ErrOutcomeUnknown) {
			t.Errorf("Append of %s: %v, want another error", name, err)
		}
	}
	if last, err := f.LastSequence(t.Context(), hubA); err != nil || last != 0 {
		t.Errorf("LastSequence = %d, %v; want 0", last, err)
	}
}

func TestLastEvents(t *testing.T) {
	t.Parallel()
	f := start(t, Config{})
	if found, err := f.LastEvents(t.Context(), hubA); err != nil || len(found) != 0 {
		t.Fatalf("LastEvents of a hub without a log = %v, %v; want none", found, err)
	}
	ofHub := event(41)
	ofCloud := event(2)
	ofCloud.Kind, ofCloud.OwnLog, ofCloud.Through = journal.KindCloudEvent, "log-2", 7
	ofCloud.Connection = `{"server":"x","cid":3}`
	if _, err := f.Append(t.Context(), hubA, 0, []journal.Record{ofHub, ofCloud}); err != nil {
		t.Fatal(err)
	}
	f.command(hubA)
	found, err := f.LastEvents(t.Context(), hubA)
	if err != nil || len(found) != 2 {
		t.Fatalf("LastEvents = %v, %v; want two", found, err)
	}
	for i := range found {
		found[i].Time = time.Time{}
	}
	epoch, kind := domain.NewEpochID(0xa), "channel.observed"
	want := []LastEvent{
		{Seq: 1, EpochID: epoch, OwnLog: "log-1", Through: 41, Type: kind},
		{
			Seq: 2, FromCloud: true, EpochID: epoch, OwnLog: "log-2", Through: 7,
			Connection: ofCloud.Connection, Type: kind,
		},
	}
	if !slices.Equal(found, want) {
		t.Errorf("LastEvents = %+v, want %+v", found, want)
	}
	if last, err := f.LastSequence(t.Context(), hubA); err != nil || last != 3 {
		t.Errorf("LastSequence = %d, %v; want 3", last, err)
	}
}

// A log whose stream was deleted goes on, with all of its events and their cursors.
func TestDeletedStream(t *testing.T) {
	t.Parallel()
	f := start(t, Config{CacheBytes: 1})
	last := f.append(hubA, 0, 1, 20)
	former := f.page(hubA, "", 100).Events
	f.awaitView(hubA, last)
	f.deleteStream()
	for range 2 { // from the journal, then from the stream that was written again
		page := f.page(hubA, "", 100)
		f.want("the log", "", upTo(1, int(last)))
		for i, e := range former {
			if page.Events[i].Cursor != e.Cursor {
				t.Fatalf("event %d has cursor %s, want %s as before", i, page.Events[i].Cursor, e.Cursor)
			}
		}
		last = f.append(hubA, last, int(last)+1, 5)
		f.awaitView(hubA, last)
	}
}
