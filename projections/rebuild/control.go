package rebuild

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"

	"hubcloud/domain"
	"hubcloud/projections/projector"
	"hubcloud/projections/schema"
)

// ErrNoReadModels means that the database does not have this program's read models: no program of
// this version has started on it.
var ErrNoReadModels = errors.New("the database does not have the read models of this program")

// Config configures a Control.
type Config struct {
	// Schema has the read models in use. Required by New; Open sets it.
	Schema string `check:"set"`
	// ConnConfig makes connections that find the tables of Schema. Required by New; Open sets it.
	ConnConfig *pgx.ConnConfig `check:"set"`
	// Sources are the streams of the read models. Required.
	projector.Sources `check:"valid"`
	// LoadRows is how many rows a load folds in memory before it writes them. While they are
	// written, it folds as many again. Defaults to 100,000, some 50 MB.
	LoadRows int `check:"positive"`
	// Logger defaults to slog.Default().
	Logger *slog.Logger
}

// Control controls the projections and read models of a service, and builds read models beside
// those in use. Every method opens connections of its own.
type Control struct{ cfg Config }

// New returns a Control.
func New(cfg Config) (*Control, error) {
	cfg.LoadRows = cmp.Or(cfg.LoadRows, 100_000)
	cfg.Logger = cmp.Or(cfg.Logger, slog.Default())
	if err := domain.CheckFields("rebuild", cfg); err != nil {
		return nil, fmt.Errorf("read models: %w", err)
	}
	return &Control{cfg}, nil
}

// Open returns a Control of a service that has started with this program's read models, in the
// database with a connection string in libpq's form. It fails with ErrNoReadModels if none has, and
// with schema.ErrOtherInstallation if the database does not belong to the installation.
func Open(ctx context.Context, url, installation string, cfg Config) (*Control, error) {
	cfg.Schema = schema.Name()
	pooling, err := schema.PoolConfig(url, cfg.Schema)
	if err != nil {
		return nil, err
	}
	cfg.ConnConfig = pooling.ConnConfig
	cfg.ConnConfig.RuntimeParams["application_name"] = "hubcloud projections"
	c, err := New(cfg)
	if err != nil {
		return nil, err
	}
	err = c.withConn(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		return c.check(ctx, conn, installation)
	})
	if err != nil {
		return nil, fmt.Errorf("read models: %w", err)
	}
	return c, nil
}

// check makes sure that the database belongs to the installation and has this program's read
// models.
func (c *Control) check(ctx context.Context, conn *pgx.Conn, installation string) error {
	if err := schema.CheckSession(ctx, c.cfg.ConnConfig, conn); err != nil {
		return err
	}
	queries := schema.New(conn)
	owner, err := queries.Installation(ctx)
	switch {
	case errors.Is(err, pgx.ErrNoRows),
		schema.HasCode(err, schema.CodeUndefinedTable, schema.CodeInvalidSchema):
		return ErrNoReadModels
	case err != nil:
		return err
	case owner != installation:
		return fmt.Errorf(
			"%w: it belongs to %s, and this one is %s", schema.ErrOtherInstallation, owner,
			installation,
		)
	}
	_, err = queries.SchemaState(ctx, c.cfg.Schema)
	if errors.Is(err, pgx.ErrNoRows) {
		return fmt.Errorf(
			"%w (%s): the service is of another version; use its own program", ErrNoReadModels,
			c.cfg.Schema,
		)
	}
	return err
}

// withConn runs fn on a connection of its own.
func (c *Control) withConn(
	ctx context.Context, fn func(ctx context.Context, conn *pgx.Conn) error,
) error {
	return schema.WithConn(
		ctx, c.cfg.ConnConfig, func(conn *pgx.Conn) error { return fn(ctx, conn) },
	)
}

// Status returns the status of every projection, in the order of schema.Names.
func (c *Control) Status(ctx context.Context) (all []schema.Status, err error) {
	err = c.withConn(ctx, func(ctx context.Context, conn *pgx.Conn) (err error) {
		all, err = schema.ReadStatus(ctx, conn, c.cfg.Schema, c.cfg.Copies(c.cfg.Logger))
		return err
	})
	return all, err
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
