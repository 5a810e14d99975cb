package cluster

import (
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
)

// Config says where a private cluster lives.
type Config struct {
	// Dir is the cluster's directory. It is made when it is missing; its parent must exist.
	// Required.
	Dir string
	// Fetch has PostgreSQL's binaries downloaded where none are installed: one version, whose
	// checksums are in the source. It is for demos; what runs in earnest uses what is installed.
	Fetch bool
	// Log gets the server's warnings and errors, and what the supervisor does. Nil: slog.Default().
	Log *slog.Logger
}

// Cluster is a running private server.
type Cluster struct {
	log     *slog.Logger
	data    string // the cluster's own directory, <Dir>/<major version>
	socket  socketDir
	binary  binaries
	owner   identity
	lock    *os.File
	stop    chan struct{}
	stopped sync.Once
	done    chan struct{}
	// outcome is how the server ended; it is read after done is closed.
	outcome error
}

// ErrInUse is what Start answers when another process has a cluster running in the directory.
var ErrInUse = errors.New("the directory is in use by another process")

// The server's only role and database. The role is a superuser of this server, which nobody else
// can reach.
const (
	role     = "hubcloud"
	database = "postgres"
	port     = 5432
)

// Start finds the server's binaries, makes the cluster if there is none, takes over from whatever
// ran on it, and gives a server that accepts connections. It takes as long as crash recovery takes;
// ctx bounds Start alone, not the server's life.
//
// It fails with ErrInUse when another process has the directory, and with ErrNoBinaries when
// PostgreSQL is not installed and cannot be fetched; that error says what to install.
func Start(ctx context.Context, cfg Config) (*Cluster, error) {
	log := cfg.Log
	if log == nil {
		log = slog.Default()
	}
	dir, err := filepath.Abs(cfg.Dir)
	if err != nil {
		return nil, fmt.Errorf("private postgres: %w", err)
	}
	c, err := prepare(ctx, dir, cfg.Fetch, log)
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
		_ = c.Stop(context.WithoutCancel(ctx)) // what matters is why it did not start
		return nil, fmt.Errorf("private postgres in %s: %w", dir, err)
	}
	return c, nil
}

// prepare does everything up to the start of the server itself.
func prepare(ctx context.Context, dir string, fetch bool, log *slog.Logger) (*Cluster, error) {
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
		log:   log,
		owner: owner,
		lock:  lock,
		stop:  make(chan struct{}),
		done:  make(chan struct{}),
	}
	if err := c.lay(ctx, dir, fetch); err != nil {
		c.socket.remove()
		return nil, errors.Join(err, lock.Close())
	}
	return c, nil
}

// lay chooses the binaries and leaves a cluster of theirs that no server runs on.
func (c *Cluster) lay(ctx context.Context, dir string, fetch bool) error {
	majors, err := existing(dir)
	if err != nil {
		return err
	}
	if c.socket, err = chooseSocketDir(dir, c.owner); err != nil {
		return err
	}
	for _, major := range majors {
		if err := takeOver(ctx, filepath.Join(dir, strconv.Itoa(major)), c.socket, c.log); err != nil {
			return err
		}
	}
	if c.binary, err = findBinaries(ctx, majors, fetch, c.log); err != nil {
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
		c.log.Warn(
			"the private database was made by other versions of PostgreSQL than those installed; "+
				"a new one is built from the streams",
			"installed_major",
			c.binary.major,
			"found_majors",
			majors,
		)
	}
	return c.initialize(ctx)
}

// URL is the connection string of the server's database, for its only role.
func (c *Cluster) URL() string {
	query := url.Values{
		"host": {
			c.socket.path,
		}, "port": {strconv.Itoa(port)}, "user": {role}, "sslmode": {"disable"},
	}
	return (&url.URL{Scheme: "postgres", Path: "/" + database, RawQuery: query.Encode()}).String()
}

// Stop shuts the server down: connections are ended, everything is written, no recovery is needed
// at the next start. A server that has not ended after 5 s, or when ctx ends, is made to; then the
// next start recovers, and nothing is lost either. Stop waits until the server is gone, and can be
// called more than once.
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

// existing gives the major versions of the clusters that are in dir, newest first.
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
