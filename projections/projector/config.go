package projector

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"

	"hubcloud/projections/apply"
	"hubcloud/projections/readmodel"
	"hubcloud/streams/telemetry"
)

// Config configures a Projector.
type Config struct {
	// Store is the store of the read models. The projector advances its position with each commit.
	// Required.
	Store *readmodel.Store
	// Directory and Presence are the streams of the read models. Required.
	Directory apply.Directory
	Presence  jetstream.KeyValue
	// LoadFrom is how many events the directory must have for the first build to load them in bulk
	// (package rebuild) instead of one by one. Defaults to 10,000.
	LoadFrom uint64
	// RetryStopped is the time after which a stopped projection tries its event again. Defaults to
	// 10 s.
	RetryStopped time.Duration
	// Logger defaults to slog.Default().
	Logger *slog.Logger
	// Metrics registers the projector's metrics; nil means none.
	Metrics prometheus.Registerer
	// Tracer begins a span for each batch; the zero value begins none.
	Tracer telemetry.Tracer
}

// WithDefaults returns a copy with defaults in place of zero values.
func (c Config) WithDefaults() Config {
	c.LoadFrom = cmp.Or(c.LoadFrom, 10_000)
	c.RetryStopped = cmp.Or(c.RetryStopped, 10*time.Second)
	c.Logger = cmp.Or(c.Logger, slog.Default())
	return c
}

// Validate returns an error that names the first invalid field.
func (c Config) Validate() error {
	switch {
	case c.Store == nil:
		return errors.New("projector: Store: must not be nil")
	case c.Directory == nil:
		return errors.New("projector: Directory: must not be nil")
	case c.Presence == nil:
		return errors.New("projector: Presence: must not be nil")
	case c.RetryStopped < 0:
		return fmt.Errorf("projector: RetryStopped: is %s, must not be negative", c.RetryStopped)
	}
	return nil
}
