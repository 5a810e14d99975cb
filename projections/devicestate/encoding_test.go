package devicestate_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"hubcloud/projections/devicestate"
	"hubcloud/streams/streamstest"
)

// TestSnapshots folds random logs with a snapshot at a random place. The state folded from the
// snapshot on must equal the state folded from the beginning.
func TestSnapshots(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		l := newLog()
		grow(t, r, l)
		if len(l.entries) == 0 {
			return
		}
		snapshot, err := l.fold(t).MarshalSnapshot()
		streamstest.Must(t, err)
		at := len(l.entries)
		l.state(snapshot)
		grow(t, r, l)
		// The log may have lost its beginning, up to the snapshot.
		from := rapid.IntRange(0, at).Draw(r, "from")
		if from < at && l.entries[from].Event == nil {
			from = at // a read without the events before it: not where a log begins
		}
		want, got := stateJSON(t, l.fold(t)), stateJSON(t, foldAll(t, l.entries[from:]))
		if got != want {
			r.Fatalf("folded from %d, with a snapshot at %d:\n got %s\nwant %s", from, at, got, want)
		}
	})
}

// Entries that were folded already change nothing.
func TestRepeatedEntries(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		l := newLog()
		grow(t, r, l)
		h := l.fold(t)
		want := stateJSON(t, h)
		for _, e := range l.entries {
			streamstest.Must(r, h.Fold(e))
		}
		if got := stateJSON(t, h); got != want {
			r.Fatalf("folded twice:\n got %s\nwant %s", got, want)
		}
	})
}

// grow adds random entries.
func grow(t *testing.T, r *rapid.T, l *log) {
	for range rapid.IntRange(0, 30).Draw(r, "entries") {
		id := rapid.Int64Range(1, 3).Draw(r, "device")
		value := rapid.SampledFrom([]string{"true", "false", `"<b>"`, "null", "1.50"}).Draw(r, "value")
		key := rapid.SampledFrom([]string{"switch", "level", "alarm", "lock"}).Draw(r, "key")
		if key == "alarm" {
			event := rapid.SampledFrom([]string{"smoke", "heartbeat", "jammed", "idle"}).Draw(r, "event")
			value = alarm("any", event, value != "false")
		}
		at := l.now() - time.Duration(rapid.IntRange(0, 3).Draw(r, "late"))*time.Second
		after := uint64(max(0, len(l.entries)-rapid.IntRange(0, 3).Draw(r, "asked")))
		switch rapid.IntRange(0, 9).Draw(r, "kind") {
		case 0:
			l.event("device.added", id, at, `{"name":"new"}`)
		case 1:
			l.event("device.forgotten", id, at, `{"name":"old"}`)
		case 2:
			l.event("device.unavailable", id, at, `{}`)
		case 3:
			l.event("device.available", id, at, `{}`)
		case 4:
			l.skipped()
		case 5:
			l.event("device.updated", id, at,
				`{"name":"x","removed_channels":[{"key":"switch","endpoint":0}]}`)
		case 6:
			if last := rapid.IntRange(-1, len(l.entries)).Draw(r, "last"); last >= 0 {
				l.answered(t, after, uint64(last), device(id, value, at), device(id+1, value, at))
			} else {
				l.read(t, after, device(id, value, at), device(id+1, value, at))
			}
		case 7:
			l.event("channel.desired", id, at, channelData(key, value))
		default:
			l.event("channel.observed", id, at, channelData(key, value))
		}
		if last := &l.entries[len(l.entries)-1]; last.Event != nil {
			last.Number = last.Seq
		}
	}
}

func stateJSON(t testing.TB, h *devicestate.Hub) string {
	t.Helper()
	text, err := json.Marshal(h)
	streamstest.Must(t, err)
	return string(text)
}

// TestLargeStates checks reads and snapshots that need several records.
func TestLargeStates(t *testing.T) {
	t.Parallel()
	l := newLog()
	var devices []devicestate.ReadDevice
	for id := range int64(3000) {
		d := device(id, fmt.Sprintf(`"%x"`, id*7919), time.Duration(id))
		d.Name, d.Model = fmt.Sprintf("%x", id*104729*7919), fmt.Sprintf("%x", id*1299709)
		devices = append(devices, d)
	}
	l.read(t, 0, devices...)
	h := l.fold(t)
	if len(l.entries) < 2 || len(h.Devices) != len(devices) || !h.Certain() {
		t.Fatalf("a read in %d records: %d devices, certain %t; want several, %d, true",
			len(l.entries), len(h.Devices), h.Certain(), len(devices))
	}
	records, err := h.MarshalSnapshot()
	if err != nil || len(records) < 2 {
		t.Fatalf("MarshalSnapshot() = %d records, %v; want several", len(records), err)
	}
	for i, record := range records {
		if len(record) > devicestate.MaxStateBytes || devicestate.IsSnapshot(record) != (i == 0) {
			t.Errorf("record %d of %d: %d bytes, begins a snapshot: %t",
				i+1, len(records), len(record), devicestate.IsSnapshot(record))
		}
	}
	at := len(l.entries)
	l.state(records)
	if got, want := stateJSON(t, foldAll(t, l.entries[at:])), stateJSON(t, l.fold(t)); got != want {
		t.Errorf("folded from a snapshot in %d records: %d bytes, want %d", len(records), len(got), len(want))
	}
	// Without its last part a snapshot counts for nothing.
	if h := foldAll(t, l.entries[at:len(l.entries)-1]); len(h.Devices) != 0 || h.Certain() {
		t.Errorf("without the last part: %d devices, certain %t", len(h.Devices), h.Certain())
	}
}

// FuzzFold folds arbitrary records. Whatever they are, the state that results can be stored and
// restored.
func FuzzFold(f *testing.F) {
	l := newLog().observed(1, "true").desired(1, "false").read(f, 1, device(1, "true", 0))
	snapshot, err := l.fold(f).MarshalSnapshot()
	streamstest.Must(f, err)
	for _, record := range snapshot {
		f.Add(l.entries[0].Event, record)
	}
	f.Add(l.entries[1].Event, l.entries[2].State)
	f.Add([]byte(`{"type":"device.updated","device_id":1,"time":"2026-01-01T00:00:00Z","data":{}}`),
		[]byte{})
	f.Fuzz(func(t *testing.T, event, state []byte) {
		h := new(devicestate.Hub)
		for i, e := range []devicestate.Entry{
			{State: state}, {EpochID: epoch, Event: event}, {State: state}, {EpochID: epoch, Event: event},
		} {
			e.Seq, e.Time = uint64(i+1), start.Add(time.Duration(i)*time.Second)
			_ = h.Fold(e) // an error puts the state in doubt
		}
		records, err := h.MarshalSnapshot()
		if err != nil {
			return // too large for a record, or a time that JSON cannot have
		}
		restored := new(devicestate.Hub)
		for i, record := range records {
			entry := devicestate.Entry{Seq: h.Seq + uint64(i) + 1, Time: h.At, State: record}
			if err := restored.Fold(entry); err != nil {
				t.Fatalf("restore of a state: %v", err)
			}
		}
		restored.Seq = h.Seq
		if got, want := stateJSON(t, restored), stateJSON(t, h); got != want {
			t.Errorf("restored state:\n got %s\nwant %s", got, want)
		}
	})
}

// Records that cannot be decoded put the state in doubt.
func TestUnreadableState(t *testing.T) {
	t.Parallel()
	h := new(devicestate.Hub)
	for _, bad := range [][]byte{{}, {1, 2, 3}, []byte(`{"v":1}`)} {
		if err := h.Fold(devicestate.Entry{Seq: h.Seq + 1, Time: start, State: bad}); err == nil {
			t.Errorf("Fold(%q) = nil, want an error", bad)
		}
	}
	if h.Certain() {
		t.Error("unreadable records leave the state certain")
	}
}
