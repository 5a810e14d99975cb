package commands_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"hubcloud/domain"
	"hubcloud/streams/streamstest"
)

// TestKeyUsedElsewhere: a process that does not know that a key is taken records its command before
// it learns it. It withdraws the record, so that no history shows the command twice, and does so
// once: it knows the key from then on.
func TestKeyUsedElsewhere(t *testing.T) {
	t.Parallel()
	cloud := newTestCloud(t)
	first := cloud.replica("r1").sent(cloud.command("k"))
	p := cloud.replica("r2")
	other := cloud.command("k")
	other.Value = json.RawMessage(`true`)
	for range 3 {
		if again := p.sent(cloud.command("k")); again != first {
			t.Errorf("repeat: got %+v, want the first answer, %+v", again, first)
		}
		_, err := p.send(other)
		wantCode(t, err, domain.CodeIdempotencyConflict)
	}
	cloud.hub.wantRan(1, 1)
	cloud.wantRecords("requested accepted")
	streamstest.Eventually(t, "the stream has both commands, one of them withdrawn", func() bool {
		return len(cloud.records()) == 4
	})
	history, err := p.History(t.Context(), cloud.hub.id, time.Now().Add(-time.Minute), 10)
	if err != nil || len(history) != 1 || history[0].Outcome != "accepted" {
		t.Errorf("History: got %+v, %v, want the accepted command only", history, err)
	}
}

// TestRaces: duplicates that are sent at two replicas at the same moment, again and again: each
// command is run once, and no record of it or of a withdrawn one stays without its outcome.
func TestRaces(t *testing.T) {
	t.Parallel()
	const races = 20
	cloud := newTestCloud(t)
	all := []*replica{cloud.replica("r1"), cloud.replica("r2")}
	for n := range races {
		var answers [2]outcome
		var group sync.WaitGroup
		for i, p := range all {
			group.Go(func() { answers[i] = p.sent(cloud.command(fmt.Sprint("k", n))) })
		}
		group.Wait()
		if answers[0] != answers[1] || answers[0].err != "" {
			t.Errorf("got the answers %+v, want one", answers)
		}
	}
	cloud.hub.wantRan(races, races)
	streamstest.Eventually(t, "each record has an outcome", func() bool {
		open := map[string]int{}
		for _, one := range cloud.records() {
			if one.Outcome == "" {
				open[one.CommandID]++
			} else {
				open[one.CommandID]--
			}
		}
		for _, n := range open {
			if n != 0 {
				return false
			}
		}
		return true
	})
	cloud.wantRecords(strings.Repeat("requested accepted ", races))
	for _, p := range all {
		history, err := p.History(t.Context(), cloud.hub.id, time.Now().Add(-time.Minute), 4*races)
		if err != nil || len(history) != races {
			t.Errorf("History: got %d commands, %v, want %d", len(history), err, races)
		}
	}
}

// TestReservationUnsure: a command is recorded while its key is reserved, and sent only once the
// reservation is known to be stored. A reservation whose acknowledgement is lost keeps its command
// ID, and with it the record.
func TestReservationUnsure(t *testing.T) {
	t.Parallel()
	cloud := newTestCloud(t)
	proxy := streamstest.NewRewriter(cloud.broker)
	p := cloud.replica("r1", func(s *setup) {
		s.broker = []nats.Option{nats.InProcessServer(proxy)}
	})
	var lost atomic.Bool
	proxy.Change(func(payload []byte) []byte {
		if bytes.Contains(payload, []byte(`"stream":"KV_idempotency"`)) && !lost.Swap(true) {
			return nil
		}
		return payload
	})
	answer := make(chan outcome, 1)
	go func() { answer <- p.sent(cloud.command("k")) }()
	streamstest.Eventually(t, "the acknowledgement is lost, and the record stored", func() bool {
		return lost.Load() && cloud.outcomes() == "requested"
	})
	cloud.hub.wantRan(0, 0)
	if got := <-answer; got.err != "" {
		t.Errorf("Send: got %s, want an answer", got.err)
	}
	cloud.hub.wantRan(1, 1)
	cloud.wantRecords("requested accepted")
	if got := len(cloud.records()); got != 2 {
		t.Errorf("the log has %d records, want 2", got)
	}
}

// TestKilledWhileStored: a process is killed while the record and the reservation of a command are
// stored: before the record or right after it, with or without the reservation. The same command at
// another replica is accepted, and run once.
func TestKilledWhileStored(t *testing.T) {
	t.Parallel()
	cloud := newTestCloud(t)
	survivor := cloud.replica("survivor")
	const kills = 8
	for n := range kills {
		var p *replica
		p = cloud.replica(fmt.Sprint("r", n), func(s *setup) {
			s.append = func(_ []byte, store func() (uint64, error)) (uint64, error) {
				if n%2 == 0 {
					p.conns.Close()
				}
				seq, err := store()
				p.conns.Close()
				return seq, errors.Join(err, nats.ErrConnectionClosed)
			}
		})
		if got := p.sent(cloud.command(fmt.Sprint("k", n))); got.err == "" {
			t.Errorf("a killed process answered %s", got.channel)
		}
		p.kill()
		cloud.wantAccepted(survivor.send(cloud.command(fmt.Sprint("k", n))))
		cloud.hub.wantRan(n+1, n+1)
		other := cloud.command(fmt.Sprint("k", n))
		other.Value = json.RawMessage(`true`)
		_, err := survivor.send(other)
		wantCode(t, err, domain.CodeIdempotencyConflict)
	}
}
