package control

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/nats-io/nats.go/jetstream"

	"hubcloud/projections"
	"hubcloud/projections/apply"
	"hubcloud/projections/database"
	"hubcloud/projections/internal/query"
	"hubcloud/projections/rebuild"
	"hubcloud/projections/schema"
	"hubcloud/projections/statemodel"
	"hubcloud/projections/status"
	"hubcloud/streams/journal"
)

// ErrNoReadModels means that the database does not have this program's read models: no program of
// this version has started on it.
var ErrNoReadModels = errors.New("the database does not have the read models of this program")

// Config configures a Control.
type Config struct {
	// URL is the database's connection string, in libpq's form. Required.
	URL string
	// InstallationID names the installation that the database must belong to. Required.
	InstallationID string
	// Directory and Presence are the streams of the read models. Required.
	Directory apply.Directory
	Presence  jetstream.KeyValue
	// Journal is the journals of the hub logs. Required.
	Journal *journal.Journal
	// LoadRows is rebuild.Config.LoadRows.
	LoadRows int
	// Logger defaults to slog.Default().
	Logger *slog.Logger
}

// WithDefaults returns a copy with defaults in place of zero values.
func (c Config) WithDefaults() Config {
	c.Logger = cmp.Or(c.Logger, slog.Default())
	return c
}

// Validate returns an error that names the first invalid field.
func (c Config) Validate() error {
	switch {
	case c.URL == "":
		return errors.New("control: URL: must not be empty")
	case c.InstallationID == "":
		return errors.New("control: InstallationID: must not be empty")
	case c.Directory == nil:
		return errors.New("control: Directory: must not be nil")
	case c.Presence == nil:
		return errors.New("control: Presence: must not be nil")
	case c.Journal == nil:
		return errors.New("control: Journal: must not be nil")
	}
	return nil
}

// Control controls the projections and read models of a service. Every method opens connections of
// its own.
type Control struct {
	cfg    Config
	schema string
	dial   *pgx.ConnConfig
}

// Open connects to the database of a service that has started with this program's read models. It
// fails with ErrNoReadModels if none has, and with schema.ErrOtherInstallation if the database
// belongs to another installation.
func Open(ctx context.Context, cfg Config) (*Control, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("read models: %w", err)
	}
	c := &Control{cfg: cfg, schema: schema.Name()}
	pooling, err := database.Config(cfg.URL, c.schema)
	if err != nil {
		return nil, err
	}
	c.dial = pooling.ConnConfig
	c.dial.RuntimeParams["application_name"] = "hubcloud projections"
	if err := c.withConn(ctx, c.check); err != nil {
		return nil, fmt.Errorf("read models: %w", err)
	}
	return c, nil
}

// check makes sure that the database belongs to the installation and has this program's read
// models.
func (c *Control) check(ctx context.Context, conn *pgx.Conn) error {
	if err := database.CheckSession(ctx, c.dial, conn); err != nil {
		return err
	}
	queries := query.New(conn)
	owner, err := queries.Installation(ctx)
	switch {
	case errors.Is(err, pgx.ErrNoRows),
		database.HasCode(err, database.CodeUndefinedTable, database.CodeInvalidSchema):
		return ErrNoReadModels
	case err != nil:
		return err
	case owner != c.cfg.InstallationID:
		return fmt.Errorf(
			"%w: it is that of %s, and this one is %s", schema.ErrOtherInstallation, owner,
			c.cfg.InstallationID,
		)
	}
	_, err = queries.SchemaState(ctx, c.schema)
	if errors.Is(err, pgx.ErrNoRows) {
		return fmt.Errorf(
			"%w (%s): the service is of another version; use its own program", ErrNoReadModels,
			c.schema,
		)
	}
	return err
}

// withConn runs fn on a connection of its own.
func (c *Control) withConn(
	ctx context.Context, fn func(ctx context.Context, conn *pgx.Conn) error,
) error {
	return database.WithConn(ctx, c.dial, func(conn *pgx.Conn) error { return fn(ctx, conn) })
}

// Status returns the status of every projection, in the order of projections.Names.
func (c *Control) Status(ctx context.Context) (all []projections.Status, err error) {
	streams := map[string]status.Stream{
		projections.Directory: &apply.DirectorySource{Log: c.cfg.Directory},
		projections.Presence:  &apply.PresenceSource{Bucket: c.cfg.Presence},
	}
	err = c.withConn(ctx, func(ctx context.Context, conn *pgx.Conn) (err error) {
		if all, err = status.Read(ctx, conn, c.schema, streams); err != nil {
			return err
		}
		devices, err := statemodel.Status(ctx, conn, c.cfg.Journal)
		all = append(all, devices)
		return err
	})
	return all, err
}

// Rebuild builds the read models again and replaces those in use: see rebuild.Builder.Rebuild. It
// calls report with the progress, one call at a time; report may be nil.
func (c *Control) Rebuild(ctx context.Context, report func(rebuild.Progress)) error {
	builder, err := c.builder(report)
	if err != nil {
		return err
	}
	return builder.Rebuild(ctx)
}

// RebuildStates is Rebuild of the last reported states of devices: see
// rebuild.Builder.RebuildStates.
func (c *Control) RebuildStates(ctx context.Context, report func(rebuild.Progress)) error {
	builder, err := c.builder(report)
	if err != nil {
		return err
	}
	return builder.RebuildStates(ctx)
}

// Verify compares the read models in use with newly built ones, and then the last reported states:
// see rebuild.Builder.Verify and VerifyStates. It calls report with the progress and found with each
// difference, each one call at a time; report may be nil.
func (c *Control) Verify(
	ctx context.Context, report func(rebuild.Progress),
	found func(projection string, d rebuild.Difference) error,
) ([]rebuild.Verified, error) {
	builder, err := c.builder(report)
	if err != nil {
		return nil, err
	}
	all, err := builder.Verify(ctx, found)
	if err != nil {
		return nil, err
	}
	states, err := builder.VerifyStates(ctx, found)
	return append(all, states), err
}

// Building returns the progress of the build under way, in any process; false if there is none.
func (c *Control) Building(ctx context.Context) (now rebuild.Progress, ok bool, err error) {
	builder, err := c.builder(nil)
	if err != nil {
		return now, false, err
	}
	return builder.Current(ctx)
}

func (c *Control) builder(report func(rebuild.Progress)) (*rebuild.Builder, error) {
	return rebuild.New(rebuild.Config{
		Schema: c.schema, ConnConfig: c.dial, Directory: c.cfg.Directory, Presence: c.cfg.Presence,
		Journal: c.cfg.Journal, LoadRows: c.cfg.LoadRows, Logger: c.cfg.Logger, Report: report,
	})
}

const (
	// awaitTimeout bounds how long a command waits for its effect.
	awaitTimeout = 15 * time.Second
	// awaitPause is the time between two reads of the status.
	awaitPause = 100 * time.Millisecond
)

// await waits until reached is true for a projection's status, at most awaitTimeout, and returns
// that status.
func (c *Control) await(
	ctx context.Context, name string, reached func(projections.Status) bool,
) (projections.Status, error) {
	for deadline := time.Now().Add(awaitTimeout); ; database.Pause(ctx, awaitPause) {
		all, err := c.Status(ctx)
		if err != nil {
			return projections.Status{}, err
		}
		for _, p := range all {
			if p.Name == name && (reached(p) || time.Now().After(deadline)) {
				return p, nil
			}
		}
	}
}
