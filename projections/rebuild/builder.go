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

// The purposes of a build.
const (
	// PurposeInstall replaces empty read models when a program with a new definition starts.
	PurposeInstall = "install"
	// PurposeRebuild replaces the read models in use.
	PurposeRebuild = "rebuild"
	// PurposeVerify is compared with the read models in use.
	PurposeVerify = "verify"
)

// The phases of a build.
const (
	// PhaseLoad reads the directory's events and writes rows.
	PhaseLoad = "load"
	// PhaseFollow applies what was stored since the load.
	PhaseFollow = "follow"
	// PhaseCompare compares with the read models in use.
	PhaseCompare = "compare"
	// PhaseHeld waits because an operator has stopped a projection.
	PhaseHeld = "held"
	// PhaseSwitch replaces the read models in use.
	PhaseSwitch = "switch"
	// PhaseDone and PhaseFailed are the end of a build.
	PhaseDone   = schema.PhaseDone
	PhaseFailed = schema.PhaseFailed
)

var (
	// ErrBusy means that another process builds beside the same schema.
	ErrBusy = errors.New("another process builds read models")
	// ErrFailed means that the build of another process, which Rebuild waited for, has failed.
	ErrFailed = errors.New("the other process could not build the read models")
)

// Config configures a Builder.
type Config struct {
	// Schema has the read models in use. Required.
	Schema string
	// ConnConfig makes connections that find the tables of Schema. Required.
	ConnConfig *pgx.ConnConfig
	// Sources are the streams of the read models. Required.
	projector.Sources
	// LoadRows is how many rows a load folds in memory before it writes them. While they are
	// written, it folds as many again. Defaults to 100,000, some 50 MB.
	LoadRows int
	// Logger defaults to slog.Default().
	Logger *slog.Logger
	// Report is called with the progress of the build twice a second and at its end, one call at a
	// time; nil means never.
	Report func(Progress)
}

// WithDefaults returns a copy with defaults in place of zero values.
func (c Config) WithDefaults() Config {
	c.LoadRows = cmp.Or(c.LoadRows, 100_000)
	c.Logger = cmp.Or(c.Logger, slog.Default())
	if c.Report == nil {
		c.Report = func(Progress) {}
	}
	return c
}

// Validate returns an error that names the first invalid field.
func (c Config) Validate() error {
	if err := c.Sources.Validate(); err != nil {
		return fmt.Errorf("rebuild: %w", err)
	}
	switch {
	case c.Schema == "":
		return errors.New("rebuild: Schema: must not be empty")
	case c.ConnConfig == nil:
		return errors.New("rebuild: ConnConfig: must not be nil")
	case c.LoadRows < 1:
		return fmt.Errorf("rebuild: LoadRows: is %d, must be at least 1", c.LoadRows)
	}
	return nil
}

// Builder builds read models beside the ones in a schema.
type Builder struct{ cfg Config }

// New returns a Builder.
func New(cfg Config) (*Builder, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("build read models: %w", err)
	}
	return &Builder{cfg}, nil
}

// Install builds read models, replaces those in use, which must be empty, and drops these. Last
// reported states stay empty: the projector builds them then. It
// returns nil also if another process builds, and fails with a *schema.StoppedError if an event
// cannot be applied.
func (b *Builder) Install(ctx context.Context) error {
	logged := *b
	logged.cfg.Report = func(p Progress) {
		b.cfg.Logger.Info(
			"building the read models", "phase", p.Phase, "sequence", p.Sequence, "head", p.Head,
			"events_per_second", int(p.PerSecond),
		)
	}
	var replaced string
	err := logged.withBuild(
		ctx, PurposeInstall, func(ctx context.Context, build *build) (err error) {
			replaced, err = build.replace(ctx)
			return err
		},
	)
	if errors.Is(err, ErrBusy) {
		return nil
	}
	if err != nil {
		return err
	}
	err = schema.WithConn(ctx, b.cfg.ConnConfig, func(conn *pgx.Conn) error {
		return schema.Drop(ctx, conn, replaced)
	})
	if err != nil {
		b.cfg.Logger.Warn(
			"empty tables not dropped; `hubcloud projections drop` drops them", "schema", replaced,
			"error", err,
		)
	}
	return nil
}

// Rebuild builds read models and replaces those in use, which are kept until they are dropped.
// While another process builds, Rebuild waits for it, and is done if that was a rebuild too; then
// it fails with ErrFailed if the other build failed. It fails with a *projections.StoppedError if
// an event cannot be applied.
func (b *Builder) Rebuild(ctx context.Context) error {
	for {
		err := b.withBuild(ctx, PurposeRebuild, func(ctx context.Context, build *build) error {
			_, err := build.replace(ctx)
			return err
		})
		if !errors.Is(err, ErrBusy) {
			return wrap(err)
		}
		rebuilt, err := b.followOther(ctx)
		if err != nil || rebuilt {
			return wrap(err)
		}
	}
}

// Verify builds read models and compares those in use with them, both as of the same event: exactly
// what the projector had committed at one moment, while reads and writes go on. It calls found with
// each difference, one call at a time. The new read models are dropped afterwards. While another
// process builds, Verify waits for it first.
//
// Last reported states of hubs that were released or reset, which no organization can see, are left
// out: they are deleted some time later.
//
// The presence bucket has only the newest value of each hub. Hubs whose presence is newer than the
// moment of the comparison are compared again until their presence no longer changes.
func (b *Builder) Verify(
	ctx context.Context, found func(projection string, d Difference) error,
) (all []Verified, err error) {
	for {
		err := b.withBuild(ctx, PurposeVerify, func(ctx context.Context, build *build) (err error) {
			all, err = (&verification{build: build, found: found}).run(ctx)
			return err
		})
		if !errors.Is(err, ErrBusy) {
			return all, wrap(err)
		}
		if _, err := b.followOther(ctx); err != nil && !errors.Is(err, ErrFailed) {
			return nil, wrap(err)
		}
	}
}

func wrap(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("build read models: %w", err)
}

// withBuild runs fn with a new build, which holds the BuildLock. It fails with ErrBusy if another
// process holds the lock. Schemas that earlier builds have left are dropped first. fn's context
// ends when the lock may be lost.
func (b *Builder) withBuild(
	ctx context.Context, purpose string, fn func(ctx context.Context, build *build) error,
) error {
	return schema.WithConn(ctx, b.cfg.ConnConfig, func(conn *pgx.Conn) error {
		if err := schema.EndWhenSilent(ctx, conn); err != nil {
			return err
		}
		taken, err := schema.BuildLock(b.cfg.Schema).Try(ctx, conn)
		if err != nil {
			return err
		}
		if !taken {
			return ErrBusy
		}
		if err := schema.DropUnfinished(ctx, conn, b.cfg.Schema); err != nil {
			return err
		}
		target := schema.NextName(b.cfg.Schema)
		if purpose == PurposeVerify {
			target = schema.VerifyName(b.cfg.Schema)
		}
		err = query.New(conn).BeginBuild(ctx, query.BeginBuildParams{
			Target: target, Schema: b.cfg.Schema, Purpose: purpose,
		})
		if err != nil {
			return err
		}
		build := &build{
			cfg: b.cfg, purpose: purpose, target: target, begun: time.Now(), conn: conn,
		}
		for _, projection := range b.cfg.Copies(b.cfg.Logger) {
			if purpose != PurposeInstall || schema.ProjectionOf(projection.Name()) != schema.Devices {
				build.copies = append(build.copies, &building{Projection: projection})
			}
		}
		return build.run(ctx, fn)
	})
}
