package faults

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"hubcloud/streams/feed"
	"hubcloud/streams/streamstest"
	"hubcloud/test/harness"
)

// The load of TestTap. Use `-tap.hubs 1000 -tap.events 100000` for a large one.
var (
	tapHubs   = flag.Int("tap.hubs", 12, "number of hubs in the test of the tap")
	tapEvents = flag.Int("tap.events", 6000, "total number of events that they send")
)

// tapProcess is a process of `hubcloud tap` that writes to a file.
type tapProcess struct {
	t          testing.TB
	out        string
	checkpoint string
	args       []string

	process *exec.Cmd
	errs    bytes.Buffer
}

func startTap(t testing.TB, dir, name string, args ...string) *tapProcess {
	t.Helper()
	p := &tapProcess{
		t:          t,
		out:        filepath.Join(dir, name+".ndjson"),
		checkpoint: filepath.Join(dir, name+".checkpoint"),
		args:       args,
	}
	p.begin()
	t.Cleanup(func() {
		if p.process.ProcessState == nil {
			p.kill()
		}
		if t.Failed() {
			t.Logf("tap %s: stderr:\n%s", name, p.errs.String())
		}
	})
	return p
}

func (p *tapProcess) begin() {
	p.t.Helper()
	out, err := os.OpenFile(p.out, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	harness.Must(p.t, err)
	defer out.Close()
	p.process = exec.Command(
		harness.Binary(p.t),
		append(
			[]string{
				"tap",
				"--follow",
				"--checkpoint",
				p.checkpoint,
				"--checkpoint-every",
				"200ms",
			},
			p.args...)...)
	p.process.Stdout, p.process.Stderr = out, &p.errs
	p.process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	harness.Must(p.t, p.process.Start())
}

func (p *tapProcess) kill() {
	_ = p.process.Process.Kill() // fails only when the process has exited
	_ = p.process.Wait()         // Wait reports the kill
}

// end interrupts the tap and waits for an orderly exit.
func (p *tapProcess) end() {
	p.t.Helper()
	harness.Must(p.t, p.process.Process.Signal(os.Interrupt))
	if err := p.process.Wait(); err != nil {
		p.t.Errorf("tap: got exit %v, want 0: %s", err, p.errs.String())
	}
}

// position returns the cursors of the checkpoint by hub, or none without a checkpoint.
func (p *tapProcess) position() map[string]string {
	p.t.Helper()
	text, err := os.ReadFile(p.checkpoint)
	if err != nil {
		return nil
	}
	var checkpoint struct {
		Hubs map[string]string `json:"hubs"`
	}
	harness.Must(p.t, json.Unmarshal(text, &checkpoint))
	return checkpoint.Hubs
}

// tapLine is a line of the tap's output.
type tapLine struct {
	harness.Event
	Hub      string `json:"hub_id"`
	Sequence uint64 `json:"sequence"`
	Org      string `json:"organization_id"`
}

// lines returns the lines of the file from an offset on, by hub. It skips incomplete lines, which
// SIGKILL leaves.
func (p *tapProcess) lines(from int64) map[string][]tapLine {
	p.t.Helper()
	file, err := os.Open(p.out)
	harness.Must(p.t, err)
	defer file.Close()
	if _, err := file.Seek(from, 0); err != nil {
		p.t.Fatal(err)
	}
	all := map[string][]tapLine{}
	reader := bufio.NewReader(file)
	for {
		text, err := reader.ReadBytes('\n')
		if err != nil {
			return all // the rest is no complete line
		}
		var line tapLine
		if json.Unmarshal(text, &line) == nil {
			all[line.Hub] = append(all[line.Hub], line)
		}
	}
}

// TestTap taps a service that is killed while hubs send, with one tap that keeps running and one
// that is killed too. Neither misses an event, and each keeps the order of a hub. The first repeats
// nothing, the second only events after its checkpoint.
func TestTap(t *testing.T) {
	t.Parallel()
	const kills = 2
	s := harness.Start(t, "--rate", "100000", "--burst", "100000")
	tenant := harness.NewTenant(t, s, "Tap")
	dir := t.TempDir()
	s.CLI("tap", "credentials", "--name", "kept", "--out", filepath.Join(dir, "tap.json"))
	kept := startTap(t, dir, "kept", "--nats-credentials", filepath.Join(dir, "tap.json"))
	killed := startTap(t, dir, "killed", "--data-dir", s.Dir)

	senders := tapSenders(t, s, tenant)
	stop := make(chan struct{})
	var sending sync.WaitGroup
	for _, sender := range senders {
		sending.Go(func() { sender.run(stop) })
	}
	type crash struct {
		position map[string]string
		offset   int64
	}
	var crashes []crash
	for range kills {
		harness.AnyMoment(800*time.Millisecond, 2*time.Second)
		s.Kill()
		s.Begin()
		harness.AnyMoment(0, 800*time.Millisecond)
		killed.kill()
		offset, err := os.Stat(killed.out)
		harness.Must(t, err)
		crashes = append(crashes, crash{killed.position(), offset.Size()})
		killed.begin()
	}
	sending.Wait()
	stored, want := map[string][]harness.Event{}, 0
	for _, sender := range senders {
		id := sender.hub.ID
		streamstest.Eventually(t, id+" is offline", func() bool {
			stored[id] = tenant.AllEvents(id, "")
			return stored[id][len(stored[id])-1].Type == "hub.disconnected"
		})
		if last := numbersOf(t, id, stored[id]); last != sender.limit {
			t.Errorf("hub %s: got %d events stored, want %d", id, last, sender.limit)
		}
		want += len(stored[id])
	}

	for _, p := range []*tapProcess{kept, killed} {
		var got map[string][]tapLine
		streamstest.Eventually(t, "the tap has caught up", func() bool {
			got = p.lines(0)
			return distinct(got) >= want
		})
		for id, events := range stored {
			restarts := 0
			if p == killed {
				restarts = kills
			}
			sameTapped(t, id, got[id], events, restarts, tenant.Org)
		}
	}
	for _, d := range crashes {
		again := killed.lines(d.offset)
		for id, cursor := range d.position {
			if len(again[id]) == 0 {
				continue
			}
			// The checkpoint may be at a record that is no event.
			after := slices.IndexFunc(stored[id], func(e harness.Event) bool {
				return sequenceOf(t, e.Cursor) > sequenceOf(t, cursor)
			})
			if first := indexOf(stored[id], again[id][0].Cursor); first != after {
				t.Errorf(
					"hub %s: event %d is the first after the checkpoint, but the next tap begins "+
						"with event %d", id, after, first,
				)
			}
		}
	}
	t.Logf("%d hubs, %d events; the killed tap repeated %d", len(senders), want, count(killed)-want)
	kept.end()
	killed.end()
	readerGone(t, s, stored)
}

// readerGone checks that a tap exits successfully when the reader of its output has closed it, and
// that its checkpoint covers no unread event.
func readerGone(t *testing.T, s *harness.Service, stored map[string][]harness.Event) {
	t.Helper()
	p := &tapProcess{t: t, checkpoint: filepath.Join(t.TempDir(), "checkpoint")}
	command := exec.Command(
		harness.Binary(t), "tap", "--data-dir", s.Dir, "--follow", "--checkpoint", p.checkpoint,
		"--checkpoint-every", "10ms",
	)
	var errs bytes.Buffer
	command.Stderr = &errs
	out, err := command.StdoutPipe()
	harness.Must(t, err)
	harness.Must(t, command.Start())
	if _, err := bufio.NewReaderSize(out, 16).ReadByte(); err != nil {
		t.Fatal(err)
	}
	harness.Must(t, out.Close())
	if err := command.Wait(); err != nil {
		t.Errorf("tap without a reader: got exit %v, want 0: %s", err, errs.String())
	}
	for id, cursor := range p.position() {
		if at := indexOf(stored[id], cursor); at >= 0 {
			t.Errorf("hub %s: the checkpoint covers event %d, which was not read", id, at)
		}
	}
}

// tapSenders creates hubs that share the events.
func tapSenders(t *testing.T, s *harness.Service, tenant *harness.Tenant) []*sender {
	t.Helper()
	senders := make([]*sender, *tapHubs)
	var group errgroup.Group
	group.SetLimit(8)
	for i, identity := range s.Inventory(len(senders)) {
		group.Go(func() error {
			hub := identity.Raw(t, s.Public())
			hub.Enroll()
			hub.GoOnline()
			tenant.Add(hub.Serial)
			hub.Disconnect()
			limit := *tapEvents / len(senders)
			// Together they send for about four seconds.
			senders[i] = &sender{
				hub:   hub,
				pace:  max(25*time.Millisecond, 4*time.Second/time.Duration(1+limit/10)),
				limit: uint64(limit),
			}
			return nil
		})
	}
	harness.Must(t, group.Wait())
	return senders
}

// indexOf returns the index of the event with a cursor, or -1.
func indexOf(events []harness.Event, cursor string) int {
	for i, e := range events {
		if e.Cursor == cursor {
			return i
		}
	}
	return -1
}

// sequenceOf returns the sequence in the log of a cursor's record.
func sequenceOf(t *testing.T, cursor string) uint64 {
	t.Helper()
	at, err := feed.DecodeCursor(cursor)
	harness.Must(t, err)
	return at.Seq
}

// count returns the number of lines.
func count(p *tapProcess) (all int) {
	for _, lines := range p.lines(0) {
		all += len(lines)
	}
	return all
}

// distinct returns the number of different events.
func distinct(lines map[string][]tapLine) int {
	seen := map[string]bool{}
	for _, ofHub := range lines {
		for _, line := range ofHub {
			seen[line.Hub+line.Cursor] = true
		}
	}
	return len(seen)
}

// sameTapped checks that a tap has written the stored events of a hub in order. It may go back once
// per restart.
func sameTapped(
	t *testing.T, id string, got []tapLine, stored []harness.Event, restarts int, org string,
) {
	t.Helper()
	next, all := 0, 0
	for _, line := range got {
		at := indexOf(stored, line.Cursor)
		if at < next && restarts > 0 {
			next, restarts = at, restarts-1
		}
		if at != next {
			t.Fatalf(
				"hub %s: want event %d, got event %d: %s %s", id, next, at, line.Type,
				line.Data,
			)
		}
		next++
		all = max(all, next)
		if string(line.Data) != string(stored[at].Data) || line.Type != stored[at].Type ||
			line.Org != org ||
			line.Sequence == 0 {
			t.Fatalf("hub %s: event %d: got %+v, want %+v", id, at, line, stored[at])
		}
	}
	if all != len(stored) {
		t.Fatalf("hub %s: got %d of %d events", id, all, len(stored))
	}
}
