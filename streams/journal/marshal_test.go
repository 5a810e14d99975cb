package journal

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"hubcloud/domain"
	"hubcloud/streams/streamstest"
)

// began is the time of the first record in tests.
var began = time.Unix(1_700_000_000, 0).UTC()

// event returns an event with a sequence and a number, stored that many milliseconds after began.
func event(hub domain.HubID, seq uint64, n int) Record {
	return Record{
		Hub: hub, Seq: seq, Time: began.Add(time.Duration(n) * time.Millisecond),
		Kind: KindHubEvent, EpochID: domain.NewEpochID(7), OrgID: "org-1", OwnLog: "log-1",
		Through: uint64(n), Payload: fmt.Appendf(nil, `{"type":"x","n":%d}`, n),
	}
}

// unknown is a tip function that knows no hub.
func unknown(domain.HubID) (Tip, bool) { return Tip{}, false }

// drawCommit returns a commit of records of a few hubs, some of which have a tip.
func drawCommit(t *rapid.T) Commit {
	hubs := []domain.HubID{"hub-aaaa-aaaa-aaaa", "hub-bbbb-bbbb-bbbb", "org-1", "h"}
	seq := rapid.Uint64Range(1, 1<<40).Draw(t, "seq")
	tips := map[domain.HubID]Tip{}
	next := map[domain.HubID]uint64{}
	for _, hub := range hubs {
		next[hub] = rapid.Uint64Range(0, 1<<62).Draw(t, "last")
		if seq > 1 && rapid.Bool().Draw(t, "known") {
			former := rapid.Uint64Range(1, seq-1).Draw(t, "former commit")
			tips[hub] = Tip{
				Seq: next[hub], Commit: former,
				Events: rapid.Uint64Range(0, next[hub]).Draw(t, "events"),
				anchor: rapid.Uint64Range(0, former-1).Draw(t, "anchor"),
				number: rapid.Byte().Draw(t, "number"),
			}
		}
	}
	var records []Record
	at := time.Unix(0, rapid.Int64Range(1, 1<<61).Draw(t, "time")).UTC()
	text := rapid.SampledFrom([]string{"", "org-1", "log-1", "a longer text", "h"})
	for range rapid.IntRange(1, 30).Draw(t, "records") {
		hub := rapid.SampledFrom(hubs).Draw(t, "hub")
		next[hub]++
		r := Record{
			Hub: hub, Seq: next[hub], Time: at, Kind: Kind(rapid.IntRange(1, 4).Draw(t, "kind")),
			Payload: []byte(rapid.StringN(0, 20, 50).Draw(t, "payload")),
		}
		if r.Kind.IsEvent() {
			r.EpochID = domain.NewEpochID(rapid.Uint32Range(1, 3).Draw(t, "epoch"))
			r.OrgID, r.Connection = text.Draw(t, "org"), text.Draw(t, "connection")
			if r.OwnLog = text.Draw(t, "own log"); r.OwnLog != "" {
				r.Through = rapid.Uint64().Draw(t, "through")
			}
		}
		if r.Kind == KindState {
			r.EpochID, r.OrgID = domain.NewEpochID(2), text.Draw(t, "org")
		}
		records = append(records, r)
		at = at.Add(time.Duration(rapid.Int64Range(1, 1<<40).Draw(t, "pause")))
	}
	tip := func(hub domain.HubID) (Tip, bool) { tip, ok := tips[hub]; return tip, ok }
	c, err := NewCommit(seq, rapid.Uint64().Draw(t, "term"), records, tip)
	streamstest.Must(t, err)
	copy(c.id[:], rapid.SliceOfN(rapid.Byte(), len(c.id), len(c.id)).Draw(t, "id"))
	return c
}

func TestMarshalRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		want := drawCommit(t)
		if rapid.IntRange(0, 9).Draw(t, "begins a term") == 0 {
			want.Records, want.Links = nil, nil
		}
		stored, err := Marshal(&want)
		streamstest.Must(t, err)
		size := CommitOverhead
		for i := range want.Records {
			size += want.Records[i].Size()
		}
		if len(stored) > size {
			t.Fatalf("%d bytes are stored, want at most the sum of Size, %d", len(stored), size)
		}
		got, err := Unmarshal(stored)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("Unmarshal = %+v, %v\nwant %+v", got, err, want)
		}
		if end := rapid.IntRange(0, len(stored)-1).Draw(t, "end"); true {
			if _, err := Unmarshal(stored[:end]); !errors.Is(err, ErrUnreadable) {
				t.Fatalf("Unmarshal of the first %d of %d bytes: %v", end, len(stored), err)
			}
		}
		if _, err := Unmarshal(append(stored, 0)); !errors.Is(err, ErrUnreadable) {
			t.Fatalf("Unmarshal with a byte behind the end: %v", err)
		}
	})
}

func TestInvalidCommits(t *testing.T) {
	t.Parallel()
	good := func() []Record { return []Record{event("a", 5, 1), event("a", 6, 2)} }
	known := func(tip Tip) func(domain.HubID) (Tip, bool) {
		return func(domain.HubID) (Tip, bool) { return tip, true }
	}
	for name, c := range map[string]struct {
		change func(records []Record)
		tip    func(domain.HubID) (Tip, bool)
		want   string
	}{
		"same time":         {func(r []Record) { r[1].Time = r[0].Time }, unknown, "time: must be"},
		"no time":           {func(r []Record) { r[0].Time = time.Time{} }, unknown, "time: is"},
		"a gap":             {func(r []Record) { r[1].Seq = 7 }, unknown, "one above"},
		"the same sequence": {func(r []Record) { r[1].Seq = 5 }, unknown, "one above"},
		"sequence 0":        {func(r []Record) { r[0].Seq = 0 }, unknown, "sequence: must be"},
		"no hub":            {func(r []Record) { r[0].Hub = "" }, unknown, "hub: is missing"},
		"no epoch":          {func(r []Record) { r[0].EpochID = domain.EpochID{} }, unknown, "epoch"},
		"a command's epoch": {func(r []Record) { r[0].Kind = KindCommand }, unknown, "command: must"},
		"a state's log":     {func(r []Record) { r[0].Kind = KindState }, unknown, "state: must"},
		"a large state": {func(r []Record) {
			r[0] = Record{
				Hub: "a", Seq: 5, Time: r[0].Time, Kind: KindState, EpochID: r[0].EpochID,
				Payload: make([]byte, MaxState+1),
			}
		}, unknown, "state: has"},
		"a state without an epoch": {func(r []Record) {
			r[0] = Record{Hub: "a", Seq: 5, Time: r[0].Time, Kind: KindState}
		}, unknown, "epoch"},
		"no kind":           {func(r []Record) { r[0].Kind = 0 }, unknown, "kind: is 0"},
		"Through alone":     {func(r []Record) { r[0].OwnLog = "" }, unknown, "through: must"},
		"not after the tip": {func([]Record) {}, known(Tip{Seq: 5, Commit: 2}), "is 5, must be 6"},
		"a tip of later":    {func([]Record) {}, known(Tip{Seq: 4, Commit: 9}), "has the commit 9"},
		"a long payload":    {func(r []Record) { r[0].Payload = make([]byte, MaxPayload+1) }, unknown, "payload"},
		"a long organization": {
			func(r []Record) { r[0].OrgID = strings.Repeat("a", maxText+1) }, unknown, "must be at most",
		},
	} {
		records := good()
		c.change(records)
		if _, err := NewCommit(9, 1, records, c.tip); err == nil ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: NewCommit: %v, want an error with %q", name, err, c.want)
		}
	}
	for _, n := range []int{0, MaxRecords + 1} {
		if _, err := NewCommit(1, 1, make([]Record, n), unknown); err == nil {
			t.Errorf("NewCommit of %d records: no error", n)
		}
	}
	big := make([]Record, 13)
	for i := range big {
		big[i] = event("a", uint64(i)+1, i)
		big[i].Payload = make([]byte, MaxPayload)
	}
	c, err := NewCommit(1, 1, big, unknown)
	streamstest.Must(t, err)
	if _, err := Marshal(&c); err == nil {
		t.Error("Marshal of 832 KiB: no error")
	}
}

// A few bytes must not make Unmarshal allocate a lot.
func TestUnmarshalBoundsMemory(t *testing.T) {
	t.Parallel()
	huge := []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f}
	head := append([]byte{formatVersion}, make([]byte, 16+1+1+8)...)
	for name, data := range map[string][]byte{
		"texts":   append(head, huge...),
		"hubs":    append(append(head, 0), huge...),
		"records": append(append(head, 0, 0), huge...),
	} {
		data = append(data, make([]byte, 100)...)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := Unmarshal(data)
		runtime.ReadMemStats(&after)
		if !errors.Is(err, ErrUnreadable) {
			t.Errorf("%s: %v, want ErrUnreadable", name, err)
		}
		// Other tests allocate at the same time, but not gigabytes.
		if n := after.TotalAlloc - before.TotalAlloc; n > 1<<30 {
			t.Errorf("%s: %d bytes allocated for %d", name, n, len(data))
		}
	}
}

func FuzzUnmarshal(f *testing.F) {
	seed := []Record{event("hub-a", 5, 1), event("hub-b", 1, 2), event("hub-a", 6, 3)}
	seed[1].Kind, seed[1].Connection = KindCloudEvent, "c"
	command := Record{
		Hub: "hub-a", Seq: 7, Time: seed[2].Time.Add(1), Kind: KindCommand, Payload: []byte("{}"),
	}
	state := Record{
		Hub: "hub-a", Seq: 8, Time: seed[2].Time.Add(2), Kind: KindState,
		EpochID: domain.NewEpochID(7), OrgID: "org-2", Payload: []byte{0, 1},
	}
	c, err := NewCommit(300, 2, append(seed, command, state), func(hub domain.HubID) (Tip, bool) {
		return Tip{Seq: 4, Commit: 299, anchor: 40, number: 3}, hub == "hub-a"
	})
	streamstest.Must(f, err)
	for _, c := range []Commit{c, {Seq: 1, Term: 1}} {
		stored, err := Marshal(&c)
		streamstest.Must(f, err)
		f.Add(stored)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := Unmarshal(data)
		if err != nil {
			if !errors.Is(err, ErrUnreadable) {
				t.Fatalf("Unmarshal: %v, want ErrUnreadable", err)
			}
			return
		}
		if len(data) > MaxCommitBytes {
			return
		}
		stored, err := Marshal(&c)
		if err != nil {
			t.Fatalf("Marshal: %v", err)
		}
		again, err := Unmarshal(stored)
		if err != nil {
			t.Fatalf("Unmarshal of what Marshal wrote: %v", err)
		}
		twice, err := Marshal(&again)
		if err != nil || !bytes.Equal(stored, twice) {
			t.Fatalf("Marshal differs after Unmarshal: %x, %v\nwant %x", twice, err, stored)
		}
	})
}
