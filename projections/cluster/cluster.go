package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"

	"hubcloud/domain"
	"hubcloud/streams/disk"
)

// Config configures a Cluster.
type Config struct {
	// Dir is the cluster's directory. It is created if it is missing; its parent must exist.
	// Required.
	Dir string `check:"set"`
	// Fetch downloads PostgreSQL's binaries if none are installed: one version, whose checksums are
	// in the source. It is meant for demos. Defaults to false.
	Fetch bool
	// UserAgent is the header User-Agent of the download. Defaults to "hubcloud".
	UserAgent string
	// Logger receives the warnings and errors of the server and of its supervisor. Defaults to
	// slog.Default().
	Logger *slog.Logger
}

// WithDefaults returns a copy with defaults in place of zero values.
func (c Config) WithDefaults() Config {
	c.UserAgent = cmp.Or(c.UserAgent, "hubcloud")
	c.Logger = cmp.Or(c.Logger, slog.Default())
	return c
}

// source returns where binaries are fetched from, or nil if they are not fetched.
func (c Config) source() *source {
	if !c.Fetch {
		return nil
	}
	return &source{registry, c.UserAgent}
}

// Cluster is a running private server.
type Cluster struct {
	logger  *slog.Logger
	data    string // <Dir>/<major version>
	socket  socketDir
	binary  binaries
	owner   identity
	lock    *disk.Lock
	stop    chan struct{}
	stopped sync.Once
	done    chan struct{}
	// outcome is how the server ended; it is read after done is closed.
	outcome error
}

// ErrInUse means that another process has a cluster running in the directory.
var ErrInUse = errors.New("the directory is in use by another process")

// The server's only role and database. The role is a superuser; only this process can reach the
// server.
const (
	role     = "hubcloud"
	database = "postgres"
	port     = 5432
)

// Start finds the server's binaries, shuts down a server that still runs in the directory, creates
// the cluster if there is none, and returns a server that accepts connections. Crash recovery can
// take minutes. ctx bounds Start, not the life of the server.
//
// It fails with ErrInUse if another process uses the directory, and with ErrNoBinaries if
// PostgreSQL is not installed and cannot be fetched; the text of that error names what to install.
func Start(ctx context.Context, cfg Config) (*Cluster, error) {
	cfg = cfg.WithDefaults()
	if err := domain.CheckFields("cluster", cfg); err != nil {
		return nil, fmt.Errorf("private postgres: %w", err)
	}
	dir, err := filepath.Abs(cfg.Dir)
	if err != nil {
		return nil, fmt.Errorf("private postgres: %w", err)
	}
	c, err := prepare(ctx, dir, cfg.source(), cfg.Logger)
	if err != nil {
		return nil, fmt.Errorf("private postgres in %s: %w", dir, err)
	}
	started := make(chan error, 1)
	go c.supervise(started)
	select {
	case err = <-started:
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err != nil {
		_ = c.Stop(context.WithoutCancel(ctx)) // the error of the start matters more
		return nil, fmt.Errorf("private postgres in %s: %w", dir, err)
	}
	return c, nil
}

// prepare does everything before the start of the server.
func prepare(
	ctx context.Context, dir string, fetch *source, logger *slog.Logger,
) (*Cluster, error) {
	owner, err := chooseIdentity(dir)
	if err != nil {
		return nil, err
	}
	if err := makeDir(dir, owner); err != nil {
		return nil, err
	}
	lock, err := lockDir(dir)
	if err != nil {
		return nil, err
	}
	c := &Cluster{
		logger: logger,
		owner:  owner,
		lock:   lock,
		stop:   make(chan struct{}),
		done:   make(chan struct{}),
	}
	if err := c.prepareData(ctx, dir, fetch); err != nil {
		c.socket.remove()
		return nil, errors.Join(err, lock.Release())
	}
	return c, nil
}

// prepareData chooses the binaries, shuts down servers that still run in dir, and creates the
// cluster of the binaries' version if it does not exist.
func (c *Cluster) prepareData(ctx context.Context, dir string, fetch *source) error {
	majors, err := existing(dir)
	if err != nil {
		return err
	}
	if c.socket, err = chooseSocketDir(dir, c.owner); err != nil {
		return err
	}
	for _, major := range majors {
		if err := takeOver(
			ctx, filepath.Join(dir, strconv.Itoa(major)), c.socket, c.logger,
		); err != nil {
			return err
		}
	}
	if c.binary, err = findBinaries(ctx, searchDirs(), majors, fetch, c.logger); err != nil {
		return err
	}
	if c.owner, err = c.owner.reaching(dir, c.binary.dir, c.socket.path); err != nil {
		return err
	}
	c.data = filepath.Join(dir, strconv.Itoa(c.binary.major))
	if err := removeHalfMade(ctx, dir); err != nil {
		return err
	}
	if slices.Contains(majors, c.binary.major) {
		return nil
	}
	if len(majors) > 0 {
		c.logger.Warn(
			"private postgres was made by another version; building a new database",
			"installed_major", c.binary.major, "found_majors", majors,
		)
	}
	return c.initialize(ctx)
}

// URL returns the connection string of the server's database, for its only role.
func (c *Cluster) URL() string {
	query := url.Values{
		"host": {c.socket.path}, "port": {strconv.Itoa(port)}, "user": {role},
		"sslmode": {"disable"},
	}
	return (&url.URL{Scheme: "postgres", Path: "/" + database, RawQuery: query.Encode()}).String()
}

// Stop shuts the server down and waits until it has ended. The server ends connections and writes
// everything out, so that the next start needs no recovery. If it has not ended after 5 s, or when
// ctx ends, Stop forces it to end; then the next start recovers, and no committed data is lost.
// Stop may be called more than once.
func (c *Cluster) Stop(ctx context.Context) error {
	c.stopped.Do(func() { close(c.stop) })
	select {
	case <-c.done:
	case <-ctx.Done():
		c.abort()
		<-c.done
	}
	return c.outcome
}

// existing returns the major versions of the clusters in dir, newest first.
func existing(dir string) ([]int, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var majors []int
	for _, entry := range entries {
		major, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		switch _, err := os.Stat(filepath.Join(dir, entry.Name(), "PG_VERSION")); {
		case err == nil:
			majors = append(majors, major)
		case !errors.Is(err, fs.ErrNotExist):
			return nil, err
		}
	}
	slices.Sort(majors)
	slices.Reverse(majors)
	return majors, nil
}
