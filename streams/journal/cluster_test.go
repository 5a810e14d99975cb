package journal

import (
	"context"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"hubcloud/streams"
	"hubcloud/streams/broker"
	"hubcloud/streams/streamstest"
)

// A journal with three copies changes its leader, twice, under a writer: every commit must be
// stored once, and a follower of another server must get it.
func TestClusterChangesTheLeader(t *testing.T) {
	t.Parallel()
	credentials := streamstest.NewCredentials(t)
	layout, err := broker.NewLayout(credentials)
	if err != nil {
		t.Fatal(err)
	}
	servers := streamstest.NewCluster(t, layout).Servers
	connect := func(n int) *streams.Conns {
		conns, err := streams.Connect(
			t.Context(), credentials, nats.InProcessServer(servers[n]),
			streams.WithLog(slog.New(slog.DiscardHandler)),
		)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(conns.Close)
		return conns
	}
	cfg := Config{Groups: 2, Replicas: 3}
	j := open(t, connect(0), cfg)
	other := open(t, connect(1), cfg)
	s := begin(t, j, NewIndex(0))
	f, _ := follow(t, other, 1)

	var want []commitID
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for n := range 300 {
		if n == 100 || n == 200 {
			if err := stepDown(ctx, j, servers); err != nil {
				t.Fatal(err)
			}
		}
		want = append(want, s.store(hubA, hubB).id)
	}
	var got []commitID
	for _, c := range f.sync(t)[1:] {
		got = append(got, c.id)
	}
	if !slices.Equal(got, want) {
		t.Errorf("%d commits were delivered, or others than the %d stored", len(got), len(want))
	}
	tip, _ := s.Tip(hubA)
	records, err := other.NewReader(0).Read(t.Context(), hubA, tip, 1, tip.Seq, unbounded)
	if err != nil || len(records) != readRecords || records[0].Seq != 1 {
		t.Errorf("Read of the first records: %d of them, %v; want %d", len(records), err, readRecords)
	}
	next, err := other.OpenWriter(ctx, 0)
	if err != nil || next.End() != s.End()+1 {
		t.Errorf("OpenWriter on another server: %v", err)
	}
}

// stepDown takes the lead of the journal of group 0 away from the server that has it. Commits on
// their way are lost, or their answers.
func stepDown(ctx context.Context, j *Journal, servers []*server.Server) error {
	info, err := j.api.Info(ctx, streams.JournalStream(0))
	if err != nil {
		return err
	}
	for _, s := range servers {
		if s.Name() == info.Cluster.Leader {
			return s.JetStreamStepdownStream(string(streams.AccountCloud), streams.JournalStream(0))
		}
	}
	return nil
}
