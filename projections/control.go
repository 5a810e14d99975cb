package projections

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/nats-io/nats.go/jetstream"

	"hubcloud/domain"
	"hubcloud/projections/internal/query"
)

// ErrNoReadModels says that the database does not have this program's read models: no program of
// this version has started on it.
var ErrNoReadModels = errors.New("the database does not have the read models of this program")

// ControlConfig says which read models an operator sees to.
type ControlConfig struct {
	// URL is the database's connection string, as libpq writes it. Required.
	URL string
	// InstallationID names the installation; a database of another one is refused. Required.
	InstallationID string
	// Directory and Presence are what the read models are made from. Required.
	Directory Directory
	Presence  jetstream.KeyValue
	// Log gets what is worth a line. Nil: slog.Default().
	Log *slog.Logger
}

// Control is what an operator does with the read models of a running service: see how they are,
// stop and resume projections, have one step over an event, build them anew beside those in use,
// compare them with what the streams say, and drop what is left. It serves nobody and projects
// nothing.
type Control struct {
	cfg    ControlConfig
	log    *slog.Logger
	schema string
	dial   *pgx.ConnConfig
	// rows is how many rows are folded in memory before they are written.
	rows int
}

// OpenControl connects to the database of a service that has been started with this program's read
// models. It fails with ErrNoReadModels when none has, and with ErrOtherInstallation when the
// database is another's.
func OpenControl(ctx context.Context, cfg ControlConfig) (*Control, error) {
	c := &Control{cfg: cfg, log: cfg.Log, schema: schemaName(), rows: loadRows}
	if c.log == nil {
		c.log = slog.Default()
	}
	pooling, err := poolConfig(cfg.URL, c.schema)
	if err != nil {
		return nil, err
	}
	c.dial = pooling.ConnConfig
	c.dial.RuntimeParams["application_name"] = "hubcloud projections"
	if err := c.with(ctx, c.check); err != nil {
		return nil, fmt.Errorf("read models: %w", err)
	}
	return c, nil
}

// check makes sure that the database is the installation's and has this program's read models.
func (c *Control) check(ctx context.Context, conn *pgx.Conn) error {
	const noTable, noSchema = "42P01", "3F000"
	queries := query.New(conn)
	owner, err := queries.Installation(ctx)
	var refused *pgconn.PgError
	switch {
	case errors.Is(err, pgx.ErrNoRows) || errors.As(err, &refused) && (refused.Code == noTable || refused.Code == noSchema):
		return ErrNoReadModels
	case err != nil:
		return err
	case owner != c.cfg.InstallationID:
		return fmt.Errorf(
			"%w: it is that of %s, and this one is %s", ErrOtherInstallation, owner,
			c.cfg.InstallationID,
		)
	}
	if _, err := queries.SchemaState(ctx, c.schema); errors.Is(err, pgx.ErrNoRows) {
		return fmt.Errorf(
			"%w (%s): the service is of another version; use its own program", ErrNoReadModels,
			c.schema,
		)
	} else if err != nil {
		return err
	}
	return nil
}

// with runs fn on a connection of its own.
func (c *Control) with(
	ctx context.Context, fn func(ctx context.Context, conn *pgx.Conn) error,
) error {
	return onConn(ctx, c.dial, func(conn *pgx.Conn) error { return fn(ctx, conn) })
}

// Status gives every projection's state, by name.
func (c *Control) Status(ctx context.Context) (all []ProjectionStatus, err error) {
	err = c.with(ctx, func(ctx context.Context, conn *pgx.Conn) (err error) {
		all, err = statuses(ctx, conn, c.schema, c.cfg.Directory, c.cfg.Presence)
		return err
	})
	return all, err
}

// Stop has projections go no further, in every schema and over restarts, until they are resumed.
// When it returns nothing more is written. why is the reason that status shows; it may be empty.
func (c *Control) Stop(ctx context.Context, projections []string, why string) error {
	return c.with(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		return c.hush(ctx, conn, func(queries *query.Queries) error {
			for _, projection := range projections {
				if err := queries.PutStop(ctx, query.PutStopParams{
					Projection: projection, Why: storable(why),
				}); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// Resume has projections go on that an operator has stopped. One that is not stopped stays as it
// is.
func (c *Control) Resume(ctx context.Context, projections []string) error {
	return c.with(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		return c.hush(ctx, conn, func(queries *query.Queries) error {
			for _, projection := range projections {
				if _, err := queries.RemoveStop(ctx, projection); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// hush changes what projectors heed, while none of them has a batch half written: whoever begins
// one afterwards sees the change. Everybody who waits for read models hears of it.
func (c *Control) hush(
	ctx context.Context, conn *pgx.Conn, change func(queries *query.Queries) error,
) error {
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		queries := query.New(tx)
		schemas, err := queries.Schemas(ctx)
		if err != nil {
			return err
		}
		for _, schema := range schemas {
			// A projector's batch begins with a row of this table.
			if _, err := tx.Exec(ctx, "LOCK TABLE "+pgx.Identifier{
				schema.Name, "checkpoints",
			}.Sanitize()+" IN EXCLUSIVE MODE"); err != nil {
				return err
			}
			if _, err := tx.Exec(ctx, "SELECT pg_notify($1, 'look')", schema.Name); err != nil {
				return err
			}
		}
		return change(queries)
	})
}

// NotStoppedError says that no projection stands stopped at an event that is to be skipped.
type NotStoppedError struct {
	Sequence uint64
	// Projections are how they are.
	Projections []ProjectionStatus
}

// Error says where the projections are instead.
func (e *NotStoppedError) Error() string {
	text := fmt.Sprintf(
		"no projection is stopped at sequence %d, and only the event that stops one can be skipped:",
		e.Sequence,
	)
	for i, p := range e.Projections {
		if i > 0 {
			text += ";"
		}
		if p.Stopped != nil {
			text += fmt.Sprintf(" %s is stopped at %d", p.Name, p.Stopped.Sequence)
		} else {
			text += fmt.Sprintf(" %s is not stopped by an event and has reached %d", p.Name, p.Sequence)
		}
	}
	return text
}

// ErrNotSkippable says that what stops a projection is not one event.
var ErrNotSkippable = errors.New("no single event is in the way")

// SkipLog records what is skipped; *directory.Log is it.
type SkipLog interface {
	Skip(ctx context.Context, o domain.Origin, skip domain.ProjectionSkipped) error
}

// Skip has the projection that an event stops step over it, and records that in the directory's
// log, so that whoever builds the read models does the same. It gives the projection's status once
// the projection has gone on, or after some seconds in any case. With no projection stopped at the
// sequence it fails with a *NotStoppedError, and with ErrNotSkippable when the read models are
// another stream's. projection says which one is meant; empty: whichever is stopped there, the
// directory's first.
func (c *Control) Skip(
	ctx context.Context, log SkipLog, o domain.Origin, projection string, seq uint64, why string,
) (skipped domain.ProjectionSkipped, now ProjectionStatus, err error) {
	all, err := c.Status(ctx)
	if err != nil {
		return skipped, now, err
	}
	for _, p := range all {
		if p.Stopped == nil || p.Stopped.Sequence != seq ||
			projection != "" && p.Name != projection {
			continue
		}
		if p.Stopped.Sequence <= p.Sequence {
			return skipped, p, fmt.Errorf("%w: %s", ErrNotSkippable, p.Stopped)
		}
		skipped = domain.ProjectionSkipped{
			Projection: p.Name, Sequence: seq, Type: storable(p.Stopped.Type),
			Error: storable(p.Stopped.Err.Error()), Why: why,
		}
		if err := log.Skip(ctx, o, skipped); err != nil {
			return skipped, p, err
		}
		now, err = c.await(ctx, p.Name, func(p ProjectionStatus) bool {
			return p.Sequence >= seq || p.State == StateStoppedByOperator ||
				p.State == StateUnattended
		})
		return skipped, now, err
	}
	return skipped, now, &NotStoppedError{Sequence: seq, Projections: all}
}

const (
	// controlPatience is how long a command waits for projections to do what it says, controlLook
	// how often it looks.
	controlPatience = 15 * time.Second
	controlLook     = 100 * time.Millisecond
)

// await waits until a projection is as wished, for a while, and gives how it is then.
func (c *Control) await(
	ctx context.Context, name string, wished func(ProjectionStatus) bool,
) (ProjectionStatus, error) {
	for deadline := time.Now().Add(controlPatience); ; pause(ctx, controlLook) {
		all, err := c.Status(ctx)
		if err != nil {
			return ProjectionStatus{}, err
		}
		for _, p := range all {
			if p.Name == name && (wished(p) || time.Now().After(deadline)) {
				return p, nil
			}
		}
	}
}

// AwaitRunning waits until projections that were resumed go on, for a while, and gives how they are
// then.
func (c *Control) AwaitRunning(
	ctx context.Context, projections []string,
) ([]ProjectionStatus, error) {
	head := map[string]uint64{}
	all := make([]ProjectionStatus, 0, len(projections))
	for _, name := range projections {
		now, err := c.await(ctx, name, func(p ProjectionStatus) bool {
			if _, known := head[name]; !known {
				head[name] = p.Head
			}
			return p.State != StateRunning || p.Sequence >= head[name]
		})
		if err != nil {
			return nil, err
		}
		all = append(all, now)
	}
	return all, nil
}
