package rebuild

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"

	"hubcloud/projections/internal/query"
	"hubcloud/projections/projector"
	"hubcloud/projections/schema"
)

// ErrNoReadModels means that the database does not have this program's read models: no program of
// this version has started on it.
var ErrNoReadModels = errors.New("the database does not have the read models of this program")

// ControlConfig configures a Control.
type ControlConfig struct {
	// URL is the database's connection string, in libpq's form. Required.
	URL string
	// InstallationID names the installation that the database must belong to. Required.
	InstallationID string
	// Sources are the streams of the read models. Required.
	projector.Sources
	// LoadRows is Config.LoadRows.
	LoadRows int
	// Logger defaults to slog.Default().
	Logger *slog.Logger
}

// Validate returns an error that names the first invalid field.
func (c ControlConfig) Validate() error {
	if err := c.Sources.Validate(); err != nil {
		return fmt.Errorf("control: %w", err)
	}
	switch {
	case c.URL == "":
		return errors.New("control: URL: must not be empty")
	case c.InstallationID == "":
		return errors.New("control: InstallationID: must not be empty")
	}
	return nil
}

// Control controls the projections and read models of a service. Every method opens connections of
// its own.
type Control struct {
	cfg    ControlConfig
	schema string
	dial   *pgx.ConnConfig
}

// Open connects to the database of a service that has started with this program's read models. It
// fails with ErrNoReadModels if none has, and with schema.ErrOtherInstallation if the database
// belongs to another installation.
func Open(ctx context.Context, cfg ControlConfig) (*Control, error) {
	cfg.Logger = cmp.Or(cfg.Logger, slog.Default())
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("read models: %w", err)
	}
	c := &Control{cfg: cfg, schema: schema.Name()}
	pooling, err := schema.PoolConfig(cfg.URL, c.schema)
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
	if err := schema.CheckSession(ctx, c.dial, conn); err != nil {
		return err
	}
	queries := query.New(conn)
	owner, err := queries.Installation(ctx)
	switch {
	case errors.Is(err, pgx.ErrNoRows),
		schema.HasCode(err, schema.CodeUndefinedTable, schema.CodeInvalidSchema):
		return ErrNoReadModels
	case err != nil:
		return err
	case owner != c.cfg.InstallationID:
		return fmt.Errorf(
			"%w: it belongs to %s, and this one is %s", schema.ErrOtherInstallation, owner,
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
	return schema.WithConn(ctx, c.dial, func(conn *pgx.Conn) error { return fn(ctx, conn) })
}

// Status returns the status of every projection, in the order of schema.Names.
func (c *Control) Status(ctx context.Context) (all []schema.Status, err error) {
	err = c.withConn(ctx, func(ctx context.Context, conn *pgx.Conn) (err error) {
		all, err = schema.ReadStatus(ctx, conn, c.schema, c.cfg.Copies(c.cfg.Logger))
		return err
	})
	return all, err
}

// Rebuild builds the read models again and replaces those in use: see Builder.Rebuild. It
// calls report with the progress, one call at a time; report may be nil.
func (c *Control) Rebuild(ctx context.Context, report func(Progress)) error {
	builder, err := c.builder(report)
	if err != nil {
		return err
	}
	return builder.Rebuild(ctx)
}

// Verify compares the read models in use with newly built ones: see Builder.Verify. It calls report
// with the progress and found with each difference, each one call at a time; report may be nil.
func (c *Control) Verify(
	ctx context.Context, report func(Progress),
	found func(projection string, d Difference) error,
) ([]Verified, error) {
	builder, err := c.builder(report)
	if err != nil {
		return nil, err
	}
	return builder.Verify(ctx, found)
}

// Building returns the progress of the build under way, in any process; false if there is none.
func (c *Control) Building(ctx context.Context) (now Progress, ok bool, err error) {
	builder, err := c.builder(nil)
	if err != nil {
		return now, false, err
	}
	return builder.Current(ctx)
}

func (c *Control) builder(report func(Progress)) (*Builder, error) {
	return New(Config{
		Schema: c.schema, ConnConfig: c.dial, Sources: c.cfg.Sources, LoadRows: c.cfg.LoadRows,
		Logger: c.cfg.Logger, Report: report,
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
	ctx context.Context, name string, reached func(schema.Status) bool,
) (schema.Status, error) {
	for deadline := time.Now().Add(awaitTimeout); ; schema.Pause(ctx, awaitPause) {
		all, err := c.Status(ctx)
		if err != nil {
			return schema.Status{}, err
		}
		for _, p := range all {
			if p.Name == name && (reached(p) || time.Now().After(deadline)) {
				return p, nil
			}
		}
	}
}
