// Package projectionstest has what the tests of read models need: a broker with a directory and a
// presence bucket, a PostgreSQL database for each test, and stores and projectors on them.
package projectionstest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"

	"hubcloud/projections/access"
	"hubcloud/projections/projector"
	"hubcloud/projections/readmodel"
	"hubcloud/projections/rebuild"
	"hubcloud/projections/schema"
	"hubcloud/streams"
	"hubcloud/streams/book"
	"hubcloud/streams/directory"
	"hubcloud/streams/journal"
	"hubcloud/streams/streamstest"
)

// InstallationID is the installation that the tests' databases belong to.
const InstallationID = "test"

// Env is a broker with a directory and buckets, and a database.
type Env struct {
	Conns     *streams.Conns
	Directory *directory.Log
	Buckets   *streams.Buckets
	// Book is the stream of books, without entries.
	Book *book.Log
	// Journal is a journal without commits.
	Journal *journal.Journal
	// URL is the connection string of the database.
	URL string
}

// New returns an Env with a broker and a database of its own, which end with the test.
func New(t testing.TB) *Env {
	t.Helper()
	e := &Env{Conns: streamstest.Start(t), URL: NewDatabase(t, "STRATEGY FILE_COPY")}
	var err error
	if e.Directory, err = directory.Open(t.Context(), e.Conns, 1); err != nil {
		t.Fatal(err)
	}
	if e.Buckets, err = streams.OpenBuckets(t.Context(), e.Conns, 1); err != nil {
		t.Fatal(err)
	}
	if e.Book, err = book.Open(t.Context(), e.Conns.Cloud, 1); err != nil {
		t.Fatal(err)
	}
	e.Journal, err = journal.New(journal.Config{Conn: e.Conns.Cloud, Retention: 25 * time.Hour})
	streamstest.Must(t, err)
	streamstest.Must(t, e.Journal.Declare(t.Context()))
	return e
}

// NewProjected returns an Env, and a store that a projector keeps up to date.
func NewProjected(t testing.TB) (*Env, *readmodel.Store) {
	t.Helper()
	e := New(t)
	s := e.OpenStore(t)
	e.Project(t, s)
	return e, s
}

// WithDatabase returns a copy of the Env with the same broker and another database.
func (e *Env) WithDatabase(url string) *Env {
	other := *e
	other.URL = url
	return &other
}

// OpenStore opens a store, which ends with the test.
func (e *Env) OpenStore(t testing.TB) *readmodel.Store {
	t.Helper()
	s, err := readmodel.Open(t.Context(), readmodel.Config{
		URL: e.URL, InstallationID: InstallationID, Logger: Logger(t),
	})
	streamstest.Must(t, err)
	t.Cleanup(s.Close)
	return s
}

// ProjectorConfig returns the configuration of a projector for a store. A stopped projection tries
// its event again after 50 ms.
func (e *Env) ProjectorConfig(t testing.TB, s *readmodel.Store) projector.Config {
	cfg := rebuild.Config{
		Schema: s.Schema(), ConnConfig: s.ConnConfig(), Sources: e.Sources(), Logger: Logger(t),
	}
	control, err := rebuild.New(cfg)
	streamstest.Must(t, err)
	return projector.Config{
		Database: cfg.ConnConfig, Schema: cfg.Schema, Sources: cfg.Sources, Committed: s.Position(),
		BuildTarget: s.SetBuildTarget, BuildFirst: control.Install, Logger: cfg.Logger,
		RetryStopped: 50 * time.Millisecond, FlushInterval: 20 * time.Millisecond,
	}
}

// Projecting is a projector that runs.
type Projecting struct {
	// Stop ends the projector and waits for it.
	Stop func()
	Metrics
}

// Metrics has the metrics of a projector.
type Metrics struct{ Registry *prometheus.Registry }

// Project runs a projector for a store until Stop or until the test ends.
func (e *Env) Project(t testing.TB, s *readmodel.Store) *Projecting {
	t.Helper()
	return RunProjector(t, e.ProjectorConfig(t, s))
}

// RunProjector runs a projector until Stop or until the test ends.
func RunProjector(t testing.TB, cfg projector.Config) *Projecting {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	cfg.Metrics = registry
	p, err := projector.New(cfg)
	streamstest.Must(t, err)
	return &Projecting{Stop: streamstest.Run(t, "the projector", p.Run), Metrics: Metrics{registry}}
}

// Metric returns the value of hubcloud_projections_NAME with the label projection, or with no label
// if projection is empty, and whether there is such a series.
func (m Metrics) Metric(t testing.TB, name, projection string) (value float64, ok bool) {
	t.Helper()
	families, err := m.Registry.Gather()
	streamstest.Must(t, err)
	for _, family := range families {
		if family.GetName() != "hubcloud_projections_"+name {
			continue
		}
		for _, metric := range family.GetMetric() {
			labels := metric.GetLabel()
			if projection == "" && len(labels) == 0 ||
				len(labels) == 1 && labels[0].GetValue() == projection {
				return metric.GetGauge().GetValue(), true
			}
		}
	}
	return 0, false
}

// MetricIs reports whether a metric has a value.
func (m Metrics) MetricIs(t testing.TB, name, projection string, want float64) bool {
	t.Helper()
	got, ok := m.Metric(t, name, projection)
	return ok && got == want
}

// Sources returns the streams of the read models.
func (e *Env) Sources() projector.Sources {
	return projector.Sources{
		Directory: e.Directory, Presence: e.Buckets.Presence, Journal: e.Journal,
		Book: e.Book,
	}
}

// Status returns the status of the projections.
func (e *Env) Status(t testing.TB, s *readmodel.Store) (all []schema.Status) {
	t.Helper()
	err := schema.WithConn(t.Context(), s.ConnConfig(), func(conn *pgx.Conn) (err error) {
		all, err = schema.ReadStatus(t.Context(), conn, s.Schema(), e.Sources().Copies(Logger(t)))
		return err
	})
	streamstest.Must(t, err)
	return all
}

// Control opens an operator's control of the read models.
func (e *Env) Control(t testing.TB) *rebuild.Control {
	t.Helper()
	return e.ControlLoading(t, 0)
}

// ControlLoading is Control with rebuild.Config.LoadRows.
func (e *Env) ControlLoading(t testing.TB, rows int) *rebuild.Control {
	t.Helper()
	c, err := rebuild.Open(t.Context(), e.URL, InstallationID, rebuild.Config{
		Sources: e.Sources(), Logger: Logger(t), LoadRows: rows,
	})
	streamstest.Must(t, err)
	return c
}

// Verify verifies the read models and returns the differences.
func Verify(
	t testing.TB, c *rebuild.Control,
) (all []rebuild.Verified, differences []rebuild.Difference) {
	t.Helper()
	all, err := c.Verify(t.Context(), nil, func(_ string, d rebuild.Difference) error {
		differences = append(differences, d)
		return nil
	})
	streamstest.Must(t, err)
	return all, differences
}

// Logger returns a logger that writes to the test's output.
func Logger(t testing.TB) *slog.Logger {
	return slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelInfo}))
}

// Waiter waits for a sequence of the directory: a readmodel.Store or an access.Index.
type Waiter interface {
	WaitFor(ctx context.Context, seq uint64) error
}

// Await waits until w has a sequence. It goes on waiting while the read models are stopped or the
// database is away.
func Await(t testing.TB, w Waiter, seq uint64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	streamstest.EventuallyNil(t, "sequence reached", func() error { return w.WaitFor(ctx, seq) })
}

// RunIndex runs an access.Index until the test ends, and returns it when it is loaded. s may be
// nil.
func (e *Env) RunIndex(t testing.TB, s *readmodel.Store) *access.Index {
	t.Helper()
	a := access.New(access.Config{Directory: e.Directory, Store: s, Logger: Logger(t)})
	streamstest.Run(t, "access", a.Run)
	select {
	case <-a.Loaded():
	case <-time.After(time.Minute):
		t.Fatal("the access index is not loaded after a minute")
	}
	return a
}

// AwaitStopped waits until an event stops a projection at a sequence.
func AwaitStopped(
	t testing.TB, s *readmodel.Store, projection string, seq uint64,
) (stopped *schema.StoppedError) {
	t.Helper()
	what := fmt.Sprintf("%s stopped at %d", projection, seq)
	streamstest.Eventually(t, what, func() bool {
		return errors.As(s.Ready(t.Context()), &stopped) && stopped.Projection == projection &&
			stopped.Sequence == seq
	})
	return stopped
}
