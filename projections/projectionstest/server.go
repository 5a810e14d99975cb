package projectionstest

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"hubcloud/projections/cluster"
	"hubcloud/streams/streamstest"
)

// server is the PostgreSQL server of the tests of one package. Main sets it before any test runs.
var server *cluster.Cluster

var databases atomic.Int64

// Main starts a PostgreSQL server, runs the tests of a package, and exits. It fails if the tests
// leak goroutines. Call it from TestMain.
func Main(m *testing.M) {
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
		Dir: filepath.Join(dir, "postgres"), Logger: slog.New(slog.DiscardHandler),
	}); err != nil {
		fmt.Println(err)
		return 1
	}
	code := w.m.Run()
	shared.stop()
	if err := server.Stop(ctx); err != nil {
		fmt.Println(err)
		return 1
	}
	return code
}

// NewDatabase creates a database on the server of Main and returns its URL. options are those of
// CREATE DATABASE.
func NewDatabase(t testing.TB, options string) string {
	t.Helper()
	name := fmt.Sprintf("test_%d", databases.Add(1))
	Execute(t, server.URL(), "CREATE DATABASE "+name+" "+options)
	parsed, err := url.Parse(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	parsed.Path = "/" + name
	return parsed.String()
}

// Execute runs SQL in a database.
func Execute(t testing.TB, url, sql string) {
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
