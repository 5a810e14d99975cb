package projectionstest

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"hubcloud/projections/cluster"
	"hubcloud/streams/streamstest"
)

// server is the PostgreSQL server of the tests of one package. The first test that needs a database
// starts it, and Main stops it.
var server packageServer

type packageServer struct {
	once    sync.Once
	dir     string
	cluster *cluster.Cluster
	err     error
}

// url returns the URL of the server.
func (s *packageServer) url(t testing.TB) string {
	t.Helper()
	s.once.Do(func() {
		if s.dir, s.err = os.MkdirTemp("", "projections"); s.err != nil {
			return
		}
		s.cluster, s.err = cluster.Start(context.Background(), cluster.Config{
			Dir: filepath.Join(s.dir, "postgres"), Logger: slog.New(slog.DiscardHandler),
		})
	})
	if s.err != nil {
		t.Fatalf("start PostgreSQL: %v", s.err)
	}
	return s.cluster.URL()
}

func (s *packageServer) stop() error {
	defer os.RemoveAll(s.dir)
	if s.cluster == nil {
		return nil
	}
	return s.cluster.Stop(context.Background())
}

var databases atomic.Int64

// Main runs the tests of a package, stops what NewDatabase and Shared have started, and exits. It
// fails if the tests leak goroutines. Call it from TestMain.
func Main(m *testing.M) {
	goleak.VerifyTestMain(withServer{m}, streamstest.Leaks()...)
}

type withServer struct{ m *testing.M }

func (w withServer) Run() int {
	code := w.m.Run()
	shared.stop()
	if err := server.stop(); err != nil {
		fmt.Println(err)
		return 1
	}
	return code
}

// NewDatabase creates a database on the package's server and returns its URL. options are for
// CREATE DATABASE.
func NewDatabase(t testing.TB, options string) string {
	t.Helper()
	name := fmt.Sprintf("test_%d", databases.Add(1))
	Execute(t, server.url(t), "CREATE DATABASE "+name+" "+options)
	parsed, err := url.Parse(server.url(t))
	streamstest.Must(t, err)
	parsed.Path = "/" + name
	return parsed.String()
}

// Execute runs SQL in a database.
func Execute(t testing.TB, url, sql string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	streamstest.Must(t, err)
	defer conn.Close(context.Background())
	if _, err := conn.Exec(t.Context(), sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}
