package feed

import (
	"bytes"
	"errors"
	"slices"
	"testing"
	"time"

	"hubcloud/domain"
	"hubcloud/streams/journal"
	"hubcloud/streams/jsapi"
	"hubcloud/streams/streamstest"
)

// state appends a record of a state.
func (f *fixture) state(hub domain.HubID, payload []byte) uint64 {
	f.tb.Helper()
	epoch, _ := f.epochOf(hub)
	seq, err := f.AppendState(f.tb.Context(), hub, epoch.ID, "org-1", payload)
	if err != nil {
		f.tb.Fatalf("append a state: %v", err)
	}
	return seq
}

// States are between, before and behind the events of a log. Pages, live readers, last events and
// commands look as if there were none, from the ring, from the stream and from the journal.
func TestNoReaderSeesStates(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]Config{
		"from the ring": {}, "from the stream": {RingEvents: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := start(t, cfg)
			reader := f.follow(hubA, "")
			secret := []byte("a state")
			last := uint64(0)
			for n := range 10 {
				f.state(hubA, secret)
				f.state(hubA, nil)
				last = f.append(hubA, last, 3*n+1, 3)
			}
			end := f.state(hubA, secret)
			f.awaitView(hubA, end)

			events, _ := f.all("", 4) // limit counts events
			if got := numbers(t, events); !slices.Equal(got, upTo(1, 30)) {
				t.Errorf("pages have the events %v, want 1 to 30", got)
			}
			live := read(t, reader, 7, 30)
			if events, err := reader.Next(t.Context(), 7); err != nil || len(events) > 0 {
				t.Errorf("Next at the end: %d events, %v; want none", len(events), err)
			}
			if !slices.Equal(live, upTo(1, 30)) {
				t.Errorf("the reader got %v, want 1 to 30", live)
			}
			found, err := f.LastEvents(t.Context(), hubA)
			if err != nil || len(found) != 1 || found[0].Seq != last || found[0].Through != 30 {
				t.Errorf("LastEvents = %+v, %v; want event 30 at %d", found, err, last)
			}
			commands, err := f.CommandRecords(t.Context(), hubA, time.Now().Add(-time.Hour), 100)
			if err != nil || len(commands) > 0 {
				t.Errorf("CommandRecords = %v, %v; want none", commands, err)
			}
			// An append still continues after the last event.
			if got := f.append(hubA, last, 31, 1); got != end+1 {
				t.Errorf("event 31 has the sequence %d, want %d", got, end+1)
			}
		})
	}
}

// A page without events moves on over states, so that a cursor of a log of which only states are
// new does not expire. A long poll does not end for a state.
func TestStatesMoveThePosition(t *testing.T) {
	t.Parallel()
	var clock streamstest.Clock
	f := start(t, Config{Retention: time.Hour, Now: clock.Now})
	last := f.append(hubA, 0, 1, 1)
	cursor := f.page(hubA, "", 10).Next
	for range 3 {
		end := f.state(hubA, []byte("x"))
		clock.Advance(40 * time.Minute)
		page, err := f.Part(t.Context(), hubA, cursor, 10, unbounded, 10*time.Millisecond)
		if err != nil || len(page.Events) > 0 {
			t.Fatalf("long poll over states: %d events, %v", len(page.Events), err)
		}
		cursor = page.Next
		if c, err := parseCursor(cursor); err != nil || c.seq != end {
			t.Fatalf("cursor after the states: got sequence %d, %v; want %d", c.seq, err, end)
		}
	}
	f.append(hubA, last, 2, 1)
	f.want("page after the states", cursor, []int{2})
}

// Entries returns events and states, without commands and other epochs, whether the stream has them
// or only the journal.
func TestEntries(t *testing.T) {
	t.Parallel()
	f := start(t, Config{})
	large := bytes.Repeat([]byte{0, 0xff, '\n'}, journal.MaxState/3)
	if _, err := f.AppendState(
		t.Context(), hubA, domain.NewEpochID(0xb), "", []byte("of another epoch"),
	); err != nil {
		t.Fatal(err)
	}
	f.append(hubA, 0, 1, 2)
	f.command(hubA)
	f.state(hubA, large)
	end := f.append(hubA, 3, 3, 1)
	read := func() []Entry {
		t.Helper()
		var all []Entry
		for from := uint64(1); from <= end; {
			entries, through, err := f.Entries(t.Context(), hubA, from, end)
			if err != nil || through < from {
				t.Fatalf("Entries(%d, %d) = up to %d, %v", from, end, through, err)
			}
			all = append(all, entries...)
			from = through + 1
		}
		return all
	}
	check := func(where string, entries []Entry) {
		t.Helper()
		var seqs []uint64
		for _, e := range entries {
			seqs = append(seqs, e.Seq)
			if e.State != (e.Seq == 5) || e.State && (!bytes.Equal(e.Payload, large) || e.OrgID != "org-1") {
				t.Errorf("%s: entry %d: state %t, %d bytes, organization %q",
					where, e.Seq, e.State, len(e.Payload), e.OrgID)
			}
		}
		if !slices.Equal(seqs, []uint64{2, 3, 5, 6}) {
			t.Errorf("%s: entries %v, want 2, 3, 5 and 6", where, seqs)
		}
	}
	f.awaitView(hubA, end)
	check("from the stream", read())
	var states []uint64
	if err := f.States(t.Context(), hubA, func(e Entry) { states = append(states, e.Seq) }); err != nil ||
		!slices.Equal(states, []uint64{5}) {
		t.Errorf("States = %v, %v; want 5", states, err)
	}
	var fromJournal []Entry
	records, err := f.journal.Records(t.Context(), hubA, 1, end, unbounded)
	streamstest.Must(t, err)
	for i := range records {
		if m := storedRecord(&records[i]); m.event || m.state && records[i].EpochID == domain.NewEpochID(0xa) {
			fromJournal = append(fromJournal, m.entry())
		}
	}
	check("from the journal", fromJournal)
	if _, err := f.AppendState(
		t.Context(), hubA, domain.NewEpochID(0xa), "", make([]byte, journal.MaxState+1),
	); err == nil {
		t.Error("a state that is too large was stored")
	}
	// States are appended on condition of the last event, too.
	conditional := []journal.Record{{
		Kind: journal.KindState, EpochID: domain.NewEpochID(0xa), Payload: []byte("x"),
	}}
	if _, err := f.Append(t.Context(), hubA, 3, conditional); !errors.Is(err, jsapi.ErrConflict) {
		t.Errorf("append of a state after another event than the last: %v, want ErrConflict", err)
	}
	if tip, ok := f.journal.Tip(hubA); !ok || tip.StateSeq != 5 || tip.EventSeq() != 6 {
		t.Errorf("tip = %+v, %t; want state 5 and event 6", tip, ok)
	}
}
