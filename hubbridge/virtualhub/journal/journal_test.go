package journal

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
)

func open(t *testing.T, dir string, capacity int) *Journal {
	t.Helper()
	j, err := Open(Config{Dir: dir, Capacity: capacity, NewLogID: func() string { return "log-1" }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() })
	return j
}

func events(n int) []json.RawMessage {
	var out []json.RawMessage
	for i := range n {
		out = append(out, json.RawMessage(fmt.Sprintf(`{"type":"t","data":{"n":%d}}`, i)))
	}
	return out
}

func commit(t *testing.T, j *Journal, c Change) uint64 {
	t.Helper()
	last, err := j.Commit(c)
	if err != nil {
		t.Fatal(err)
	}
	return last
}

// holds checks what a journal holds, events by their numbers.
func holds(t *testing.T, j *Journal, oldest, newest uint64, entries ...string) {
	t.Helper()
	o, n := j.Bounds()
	if o != oldest || n != newest {
		t.Errorf("holds %d to %d, want %d to %d", o, n, oldest, newest)
	}
	for i, e := range j.Events(o, 1<<30, 1<<30) {
		var event struct{ Seq uint64 }
		if err := json.Unmarshal(e, &event); err != nil || event.Seq != o+uint64(i) {
			t.Errorf("event %d is %s", o+uint64(i), e)
		}
	}
	if names := slices.Sorted(maps.Keys(j.Entries(""))); !slices.Equal(names, entries) {
		t.Errorf("entries %v, want %v", names, entries)
	}
}

// crash gives a directory with the files as they are now: what a kill leaves.
func crash(t *testing.T, dir string) string {
	t.Helper()
	after := t.TempDir()
	if err := os.CopyFS(after, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	return after
}

// TestJournal is the same story in memory, on disk, and on disk with a crash after every step.
func TestJournal(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"memory", "disk", "crashes"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			dir := ""
			if mode != "memory" {
				dir = t.TempDir()
			}
			j := open(t, dir, 8)
			again := func() {
				if mode == "crashes" {
					dir = crash(t, dir)
					j = open(t, dir, 8)
				}
			}
			holds(t, j, 1, 0)
			again()
			if last := commit(t, j, Change{
				Events: events(5),
				Set: map[string]json.RawMessage{
					"a": json.RawMessage("1"), "b": json.RawMessage("2"),
				},
			}); last != 5 {
				t.Errorf("last is %d", last)
			}
			again()
			holds(t, j, 1, 5, "a", "b")
			j.Ack(3)
			commit(t, j, Change{Delete: []string{"a"}})
			again()
			holds(t, j, 4, 5, "b")
			commit(t, j, Change{Events: events(9)}) // two more than there is room for
			again()
			holds(t, j, 7, 14, "b")
			if from, to, err := j.Skip(6); err != nil || from != 7 || to != 20 {
				t.Errorf("skip: %d to %d, %v", from, to, err)
			}
			again()
			holds(t, j, 21, 20, "b")
			j.Ack(30) // the cloud knows numbers that we do not
			commit(t, j, Change{Events: events(1)})
			again()
			holds(t, j, 31, 31, "b")
			if err := j.Reset("log-2", map[string]json.RawMessage{
				"c": json.RawMessage("3"),
			}); err != nil {
				t.Fatal(err)
			}
			again()
			holds(t, j, 1, 0, "c")
			if j.LogID() != "log-2" {
				t.Errorf("log %s", j.LogID())
			}
		})
	}
}

func TestEventsKeepToTheirBounds(t *testing.T) {
	t.Parallel()
	j := open(t, "", 100)
	commit(t, j, Change{Events: events(10)})
	j.Ack(2)
	size := len(j.Events(3, 1, 1<<20)[0]) + 1
	for _, tc := range []struct {
		from           uint64
		limit, maxSize int
		want           int
	}{
		{3, 100, 1 << 20, 8}, {3, 4, 1 << 20, 4}, {9, 4, 1 << 20, 2}, {2, 4, 1 << 20, 0},
		{11, 4, 1 << 20, 0}, {3, 100, 3 * size, 3}, {3, 100, 1, 1},
	} {
		if got := len(j.Events(tc.from, tc.limit, tc.maxSize)); got != tc.want {
			t.Errorf("%+v: %d events", tc, got)
		}
	}
}

// TestTornTail cuts the file after every byte: what was committed before the cut record is there,
// and numbering goes on after it.
func TestTornTail(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j := open(t, dir, 100)
	commit(
		t, j,
		Change{Events: events(3), Set: map[string]json.RawMessage{"kept": json.RawMessage("1")}},
	)
	kept := size(t, dir)
	commit(
		t, j,
		Change{Events: events(2), Set: map[string]json.RawMessage{"torn": json.RawMessage("1")}},
	)
	whole, err := os.ReadFile(filepath.Join(dir, fileName))
	if err != nil {
		t.Fatal(err)
	}
	for cut := kept; cut < len(whole); cut++ {
		for _, tail := range []string{"", strings.Repeat("\x00", 40)} {
			after := t.TempDir()
			if err := os.WriteFile(filepath.Join(after, fileName), append(slices.Clone(whole[:cut]), tail...), 0o600); err != nil {
				t.Fatal(err)
			}
			j := open(t, after, 100)
			holds(t, j, 1, 3, "kept")
			commit(t, j, Change{Events: events(1)})
			if err := j.Close(); err != nil {
				t.Fatal(err)
			}
			holds(t, open(t, after, 100), 1, 4, "kept")
		}
	}
}

func size(t *testing.T, dir string) int {
	t.Helper()
	info, err := os.Stat(filepath.Join(dir, fileName))
	if err != nil {
		t.Fatal(err)
	}
	return int(info.Size())
}

// TestDamage: what may have been told must not be told differently, so a journal that is damaged
// before its end does not open.
func TestDamage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j := open(t, dir, 100)
	for range 3 {
		commit(t, j, Change{Events: events(3)})
	}
	whole, err := os.ReadFile(filepath.Join(dir, fileName))
	if err != nil {
		t.Fatal(err)
	}
	after := t.TempDir()
	whole[len(whole)/2] ^= 1
	if err := os.WriteFile(filepath.Join(after, fileName), whole, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(Config{Dir: after, NewLogID: func() string { return "x" }}); !errors.Is(
		err, ErrCorrupt,
	) {
		t.Errorf("%v", err)
	}
}

func TestOneAtATime(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j := open(t, dir, 100)
	if _, err := Open(Config{Dir: dir, NewLogID: func() string { return "x" }}); !errors.Is(
		err, ErrInUse,
	) {
		t.Errorf("a second journal: %v", err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := j.Commit(Change{Events: events(1)}); !errors.Is(err, ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	open(t, dir, 100)
}

// TestRewrite holds that the file stays near the size of what is held, and that nothing is lost on
// the way.
func TestRewrite(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j := open(t, dir, 50)
	pad := json.RawMessage(`{"padding":"` + strings.Repeat("x", 1000) + `"}`)
	largest := 0
	for i := range 300 {
		last := commit(
			t,
			j,
			Change{
				Events: slices.Repeat([]json.RawMessage{pad}, 20),
				Set:    map[string]json.RawMessage{"last": json.RawMessage(fmt.Sprint(i))},
			},
		)
		if i%3 == 0 {
			j.Ack(last - 5)
		}
		largest = max(largest, size(t, dir))
	}
	if largest > 2*leastRewrite {
		t.Errorf("the file grew to %d bytes", largest)
	}
	oldest, newest := j.Bounds()
	after := open(t, crash(t, dir), 50)
	holds(t, after, oldest, newest, "last")
	if last := after.Entries("last")["last"]; string(last) != "299" {
		t.Errorf("last is %s", last)
	}
}

// TestBadEvent: an event that is no JSON cannot be written, and leaves everything as it was.
func TestBadEvent(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j := open(t, dir, 50)
	commit(t, j, Change{Events: events(1)})
	if _, err := j.Commit(Change{Events: []json.RawMessage{json.RawMessage(`{"a":`)}}); err == nil {
		t.Error("kept")
	}
	holds(t, j, 1, 1)
	commit(t, j, Change{Events: []json.RawMessage{json.RawMessage(`{}`)}})
	holds(t, open(t, crash(t, dir), 50), 1, 2)
}

// FuzzDecode: whatever is in a file, decode ends without a panic, and what it takes for whole
// frames decodes to the same again.
func FuzzDecode(f *testing.F) {
	frame, err := encode(record{Log: "a", First: 1, Events: events(2)})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(frame)
	f.Add(append(slices.Clone(frame), frame[:5]...))
	f.Add(append(slices.Clone(frame), make([]byte, 20)...))
	f.Fuzz(func(t *testing.T, data []byte) {
		var first, second int
		whole, err := decode(data, func(record) { first++ })
		if whole > len(data) {
			t.Fatalf("%d of %d bytes", whole, len(data))
		}
		if err != nil {
			return
		}
		if again, err := decode(data[:whole], func(record) { second++ }); again != whole ||
			err != nil ||
			first != second {
			t.Fatalf(
				"%d bytes and %d records, then %d and %d: %v", whole, first, again, second, err,
			)
		}
	})
}
