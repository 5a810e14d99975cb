package hub

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"hubcloud/streams/streamstest"
)

func openTest(t *testing.T, dir string, capacity int) *journal {
	t.Helper()
	j, err := openJournal(dir, capacity, func() string { return "log-1" })
	streamstest.Must(t, err)
	t.Cleanup(func() { _ = j.close() })
	return j
}

func events(n int) []json.RawMessage {
	var out []json.RawMessage
	for i := range n {
		out = append(out, json.RawMessage(fmt.Sprintf(`{"type":"t","data":{"n":%d}}`, i)))
	}
	return out
}

// change is the arguments of a commit.
type change struct {
	Events []json.RawMessage
	Set    map[string]json.RawMessage
	Delete []string
}

func commit(t *testing.T, j *journal, c change) uint64 {
	t.Helper()
	last, err := j.commit(c.Events, c.Set, c.Delete)
	streamstest.Must(t, err)
	return last
}

// holds fails the test unless j keeps exactly the given numbers and entries.
func holds(t *testing.T, j *journal, oldest, newest uint64, entries ...string) {
	t.Helper()
	o, n := j.bounds()
	if o != oldest || n != newest {
		t.Errorf("bounds() = %d, %d, want %d, %d", o, n, oldest, newest)
	}
	for i, e := range j.eventsFrom(o, 1<<30, 1<<30) {
		var event struct{ Seq uint64 }
		if err := json.Unmarshal(e, &event); err != nil || event.Seq != o+uint64(i) {
			t.Errorf("event %s, want number %d", e, o+uint64(i))
		}
	}
	if names := slices.Sorted(maps.Keys(j.entriesWith(""))); !slices.Equal(names, entries) {
		t.Errorf("entries %v, want %v", names, entries)
	}
}

// crash returns a copy of dir as it is now, which is the state after a kill.
func crash(t *testing.T, dir string) string {
	t.Helper()
	after := t.TempDir()
	streamstest.Must(t, os.CopyFS(after, os.DirFS(dir)))
	return after
}

// TestJournal runs the same steps in memory, on disk, and on disk with a crash after every step.
func TestJournal(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"memory", "disk", "crashes"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			dir := ""
			if mode != "memory" {
				dir = t.TempDir()
			}
			j := openTest(t, dir, 8)
			maybeCrash := func() {
				if mode == "crashes" {
					dir = crash(t, dir)
					j = openTest(t, dir, 8)
				}
			}
			holds(t, j, 1, 0)
			maybeCrash()
			if last := commit(t, j, change{
				Events: events(5),
				Set: map[string]json.RawMessage{
					"a": json.RawMessage("1"), "b": json.RawMessage("2"),
				},
			}); last != 5 {
				t.Errorf("commit() = %d, want 5", last)
			}
			maybeCrash()
			holds(t, j, 1, 5, "a", "b")
			j.ack(3)
			commit(t, j, change{Delete: []string{"a"}})
			maybeCrash()
			holds(t, j, 4, 5, "b")
			commit(t, j, change{Events: events(9)}) // three more than the capacity
			maybeCrash()
			holds(t, j, 7, 14, "b")
			if from, to, err := j.skip(6); err != nil || from != 7 || to != 20 {
				t.Errorf("skip(6) = %d, %d, %v, want 7, 20", from, to, err)
			}
			maybeCrash()
			holds(t, j, 21, 20, "b")
			j.ack(30) // beyond the highest number used
			commit(t, j, change{Events: events(1)})
			maybeCrash()
			holds(t, j, 31, 31, "b")
			streamstest.Must(t, j.reset("log-2", map[string]json.RawMessage{
				"c": json.RawMessage("3"),
			}))
			maybeCrash()
			holds(t, j, 1, 0, "c")
			if j.currentLog() != "log-2" {
				t.Errorf("currentLog() = %q, want log-2", j.currentLog())
			}
		})
	}
}

func TestEventsLimits(t *testing.T) {
	t.Parallel()
	j := openTest(t, "", 100)
	commit(t, j, change{Events: events(10)})
	j.ack(2)
	size := len(j.eventsFrom(3, 1, 1<<20)[0]) + 1
	for _, tc := range []struct {
		from           uint64
		limit, maxSize int
		want           int
	}{
		{3, 100, 1 << 20, 8}, {3, 4, 1 << 20, 4}, {9, 4, 1 << 20, 2}, {2, 4, 1 << 20, 0},
		{11, 4, 1 << 20, 0}, {3, 100, 3 * size, 3}, {3, 100, 1, 1},
	} {
		if got := len(j.eventsFrom(tc.from, tc.limit, tc.maxSize)); got != tc.want {
			t.Errorf(
				"eventsFrom(%d, %d, %d): %d events, want %d", tc.from, tc.limit, tc.maxSize, got,
				tc.want,
			)
		}
	}
}

// TestIncompleteLastRecord truncates the file after every byte of its last record. The journal must
// keep the changes before, and the next number must follow them.
func TestIncompleteLastRecord(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j := openTest(t, dir, 100)
	commit(
		t, j,
		change{Events: events(3), Set: map[string]json.RawMessage{"kept": json.RawMessage("1")}},
	)
	kept := size(t, dir)
	commit(
		t, j,
		change{Events: events(2), Set: map[string]json.RawMessage{"torn": json.RawMessage("1")}},
	)
	whole, err := os.ReadFile(filepath.Join(dir, fileName))
	streamstest.Must(t, err)
	for cut := kept; cut < len(whole); cut++ {
		for _, tail := range []string{"", strings.Repeat("\x00", 40)} {
			if tail != "" && cut > kept {
				break // see TestUnwrittenSectors
			}
			after := t.TempDir()
			streamstest.Must(t, os.WriteFile(
				filepath.Join(after, fileName), append(slices.Clone(whole[:cut]), tail...), 0o600,
			))
			j := openTest(t, after, 100)
			holds(t, j, 1, 3, "kept")
			commit(t, j, change{Events: events(1)})
			streamstest.Must(t, j.close())
			holds(t, openTest(t, after, 100), 1, 4, "kept")
		}
	}
}

func size(t *testing.T, dir string) int {
	t.Helper()
	info, err := os.Stat(filepath.Join(dir, fileName))
	streamstest.Must(t, err)
	return int(info.Size())
}

// TestDamage damages each byte of a file. The numbers of damaged records may have been used, so the
// journal must not open and use them again. A damaged length made all records behind it look like
// one that a crash had left incomplete, and a damaged last record was removed.
func TestDamage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j := openTest(t, dir, 100)
	for range 3 {
		commit(t, j, change{Events: events(3)})
	}
	whole, err := os.ReadFile(filepath.Join(dir, fileName))
	streamstest.Must(t, err)
	for i := range whole {
		damaged := slices.Clone(whole)
		for n := i; n < min(i+8, len(damaged)); n++ {
			damaged[n] ^= 0xff
		}
		if _, err := decode(damaged, func(record) {}); !errors.Is(err, ErrCorrupt) {
			t.Fatalf("bytes from %d of %d damaged: %v, want ErrCorrupt", i, len(whole), err)
		}
	}
	after := t.TempDir()
	whole[len(whole)/2] ^= 1
	streamstest.Must(t, os.WriteFile(filepath.Join(after, fileName), whole, 0o600))
	if _, err := openJournal(after, 100, newLogID); !errors.Is(
		err, ErrCorrupt,
	) {
		t.Errorf("openJournal() = %v, want ErrCorrupt", err)
	}
}

// TestUnwrittenSectors loses sectors of the last record, as a power cut before its sync can.
func TestUnwrittenSectors(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j := openTest(t, dir, 100)
	commit(t, j, change{Events: events(3)})
	before := size(t, dir)
	commit(t, j, change{Events: events(100)})
	whole, err := os.ReadFile(filepath.Join(dir, fileName))
	streamstest.Must(t, err)
	for at := (before/sectorBytes + 1) * sectorBytes; at < len(whole); at += sectorBytes {
		torn := slices.Clone(whole)
		clear(torn[at:min(at+sectorBytes, len(torn))])
		if got, err := decode(torn, func(record) {}); got != before || err != nil {
			t.Errorf("without the sector at %d: %d bytes and %v, want %d", at, got, err, before)
		}
	}
}

func TestOneJournalPerDirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j := openTest(t, dir, 100)
	if _, err := openJournal(dir, 100, newLogID); !errors.Is(
		err, ErrInUse,
	) {
		t.Errorf("openJournal() of a second journal = %v, want ErrInUse", err)
	}
	streamstest.Must(t, j.close())
	if _, err := j.commit(events(1), nil, nil); !errors.Is(err, ErrClosed) {
		t.Errorf("commit() after Close = %v, want ErrClosed", err)
	}
	openTest(t, dir, 100)
}

// TestRewrite: the file stays near the size of the kept events, and rewriting it loses nothing.
func TestRewrite(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j := openTest(t, dir, 50)
	pad := json.RawMessage(`{"padding":"` + strings.Repeat("x", 1000) + `"}`)
	largest := 0
	for i := range 300 {
		last := commit(t, j, change{
			Events: slices.Repeat([]json.RawMessage{pad}, 20),
			Set:    map[string]json.RawMessage{"last": json.RawMessage(fmt.Sprint(i))},
		})
		if i%3 == 0 {
			j.ack(last - 5)
		}
		largest = max(largest, size(t, dir))
	}
	if largest > 2*minRewriteBytes {
		t.Errorf("file grew to %d bytes, want at most %d", largest, 2*minRewriteBytes)
	}
	oldest, newest := j.bounds()
	after := openTest(t, crash(t, dir), 50)
	holds(t, after, oldest, newest, "last")
	if last := after.entriesWith("last")["last"]; string(last) != "299" {
		t.Errorf("entry last = %s, want 299", last)
	}
}

// TestCommitInvalidEvent: a Commit with an event that is not JSON fails and changes nothing.
func TestCommitInvalidEvent(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j := openTest(t, dir, 50)
	commit(t, j, change{Events: events(1)})
	if _, err := j.commit([]json.RawMessage{json.RawMessage(`{"a":`)}, nil, nil); err == nil {
		t.Error("commit() of invalid JSON returned no error")
	}
	holds(t, j, 1, 1)
	commit(t, j, change{Events: []json.RawMessage{json.RawMessage(`{}`)}})
	holds(t, openTest(t, crash(t, dir), 50), 1, 2)
}

// FuzzDecode: decode ends without a panic for any data, and the records that it finds complete
// decode again.
func FuzzDecode(f *testing.F) {
	frame, err := encode(record{Log: "a", First: 1, Events: events(2)})
	streamstest.Must(f, err)
	f.Add(frame)
	f.Add(append(slices.Clone(frame), frame[:5]...))
	f.Add(append(slices.Clone(frame), make([]byte, 20)...))
	f.Fuzz(func(t *testing.T, data []byte) {
		var first, second int
		whole, err := decode(data, func(record) { first++ })
		if whole > len(data) {
			t.Fatalf("decode() = %d, want at most %d", whole, len(data))
		}
		if err != nil {
			return
		}
		if again, err := decode(data[:whole], func(record) { second++ }); again != whole || err != nil ||
			first != second {
			t.Fatalf(
				"decode() = %d with %d records, then %d with %d: %v", whole, first, again, second,
				err,
			)
		}
	})
}
