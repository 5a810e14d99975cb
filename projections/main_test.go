package projections

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"hubcloud/domain"
	"hubcloud/projections/cluster"
	"hubcloud/streams"
	"hubcloud/streams/directory"
	"hubcloud/streams/streamstest"
)

// server is the tests' own PostgreSQL; each test has a database of its own in it.
var server *cluster.Cluster

var databases atomic.Int64

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(withServer{m}, streamstest.Leaks()...)
}

type withServer struct{ m *testing.M }

func (w withServer) Run() int {
	dir, err := os.MkdirTemp("", "projections")
	if err != nil {
		fmt.Println(err)
		return 1
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()
	if server, err = cluster.Start(ctx, cluster.Config{
		Dir: filepath.Join(dir, "postgres"), Log: slog.New(slog.DiscardHandler),
	}); err != nil {
		fmt.Println(err)
		return 1
	}
	code := w.m.Run()
	if err := server.Stop(ctx); err != nil {
		fmt.Println(err)
		return 1
	}
	return code
}

// newDatabase makes a database and gives its URL.
func newDatabase(t testing.TB) string {
	t.Helper()
	name := fmt.Sprintf("test_%d", databases.Add(1))
	execute(t, server.URL(), "CREATE DATABASE "+name+" STRATEGY FILE_COPY")
	parsed, err := url.Parse(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	parsed.Path = "/" + name
	return parsed.String()
}

func execute(t testing.TB, url, sql string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if _, err := conn.Exec(t.Context(), sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// world is a broker with a directory and buckets, and a database.
type world struct {
	conns   *streams.Conns
	dir     *directory.Log
	buckets *streams.Buckets
	url     string
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{conns: streamstest.Start(t), url: newDatabase(t)}
	var err error
	if w.dir, err = directory.Open(t.Context(), w.conns, 1); err != nil {
		t.Fatal(err)
	}
	if w.buckets, err = streams.OpenBuckets(t.Context(), w.conns, 1); err != nil {
		t.Fatal(err)
	}
	return w
}

// open opens a store that ends with the test; tests of what stops a projection do not wait ten
// seconds for the next try.
func (w *world) open(t testing.TB) *Store {
	t.Helper()
	s, err := Open(t.Context(), StoreConfig{URL: w.url, InstallationID: "test", Log: testLog(t)})
	if err != nil {
		t.Fatal(err)
	}
	s.retryStopped = 50 * time.Millisecond
	t.Cleanup(s.Close)
	return s
}

// project runs a store's projector until the returned function is called, or the test ends.
func (w *world) project(t testing.TB, s *Store) (stop func()) {
	t.Helper()
	return w.projectFrom(t, s, w.dir)
}

func (w *world) projectFrom(t testing.TB, s *Store, dir Directory) (stop func()) {
	t.Helper()
	return background(
		t, "the projector",
		func(ctx context.Context) error { return s.RunProjector(ctx, dir, w.buckets.Presence) },
	)
}

// background runs something until the returned function is called, or the test ends; it must then
// end by itself, without an error.
func background(t testing.TB, what string, run func(ctx context.Context) error) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("%s ended with %v", what, err)
		}
	})
	t.Cleanup(stop)
	return stop
}

func testLog(t testing.TB) *slog.Logger {
	return slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelInfo}))
}

var byOperator = domain.Actor{Kind: domain.ActorOperator}

// tell appends facts about one thing to the directory, as they are, and gives the sequence of the
// last.
func (w *world) tell(t testing.TB, subject string, facts ...domain.Fact) uint64 {
	t.Helper()
	return w.tellAt(t, time.Now(), subject, facts...)
}

func (w *world) tellAt(t testing.TB, at time.Time, subject string, facts ...domain.Fact) uint64 {
	t.Helper()
	last, err := w.dir.Load(
		t.Context(), subject, 0, func(uint64, domain.Event) error { return nil },
	)
	if err != nil {
		t.Fatal(err)
	}
	events := make([]domain.Event, len(facts))
	for i, fact := range facts {
		events[i] = domain.Record(domain.Origin{At: at, Actor: byOperator}, fact)
	}
	seq, err := w.dir.Append(t.Context(), subject, last, events...)
	if err != nil {
		t.Fatal(err)
	}
	return seq
}

// say puts a hub's presence into the bucket.
func (w *world) say(t testing.TB, p domain.Presence) {
	t.Helper()
	value, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	w.put(t, p.HubID, value)
}

func (w *world) put(t testing.TB, hub domain.HubID, value []byte) {
	t.Helper()
	if _, err := w.buckets.Presence.Put(t.Context(), string(hub), value); err != nil {
		t.Fatal(err)
	}
}

// await waits until the read models have a sequence, also when they stand still before it for a
// while.
func await(t testing.TB, s interface {
	WaitFor(context.Context, uint64) error
}, seq uint64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	err := s.WaitFor(ctx, seq)
	for errors.Is(err, directory.ErrStandingStill) && ctx.Err() == nil {
		pause(ctx, 5*time.Millisecond)
		err = s.WaitFor(ctx, seq)
	}
	if err != nil {
		t.Fatalf("sequence %d: %v", seq, err)
	}
}

// within polls until ok, for what no signal tells of.
func within(t testing.TB, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(time.Minute); !ok(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("not in time: %s", what)
		}
	}
}
