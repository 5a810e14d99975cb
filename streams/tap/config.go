package tap

import (
	"cmp"
	"errors"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go"

	"hubcloud/domain"
)

// DefaultCheckpointEvery is the default of Config.CheckpointEvery.
const DefaultCheckpointEvery = time.Second

// Config configures a Tap. Conn, Shards and Output are required.
type Config struct {
	// Conn is a connection made by Connect.
	Conn *nats.Conn `check:"set"`
	// Shards is the number of the installation's shards.
	Shards int `check:"positive"`
	// Hubs are the hubs to read. Defaults to all hubs, including those added while the tap runs.
	Hubs []domain.HubID
	// Types are the event types to deliver. A type that ends in ".*" selects all types with that
	// prefix. Defaults to all types.
	Types []string
	// Commands adds records of commands to the output.
	Commands bool
	// Since is the time from which events of a hub without a position are read. Defaults to the
	// oldest stored event.
	Since time.Time
	// New starts hubs without a position at their next event. It excludes Since.
	New bool
	// Follow makes Run continue with new events. Otherwise Run ends after the events that were
	// stored when it started.
	Follow bool
	// Output receives the records.
	Output Output `check:"set"`
	// Checkpoint is the path of the file with the hubs' positions. Without it the tap starts over
	// at every run.
	Checkpoint string
	// CheckpointEvery is the pause between two checkpoints; it grows with the time that writing one
	// takes. Defaults to DefaultCheckpointEvery.
	CheckpointEvery time.Duration `check:"at least 0"`
	// ReplacedAfter is how long a log must end before the last event that was read, without
	// growing, until it counts as another one: a server of a cluster that lost the end of a log
	// gets it again from the journal. For a log without any event it is ten times as long. Defaults
	// to 45 s.
	ReplacedAfter time.Duration `check:"at least 0"`
	// Logger receives warnings about failures that the tap recovers from. Defaults to
	// slog.Default().
	Logger *slog.Logger
}

// WithDefaults returns a copy with defaults in place of zero values.
func (c Config) WithDefaults() Config {
	c.CheckpointEvery = cmp.Or(c.CheckpointEvery, DefaultCheckpointEvery)
	c.ReplacedAfter = cmp.Or(c.ReplacedAfter, 45*time.Second)
	c.Logger = cmp.Or(c.Logger, slog.Default())
	return c
}

// Validate returns an error that names the first invalid field. It expects the result of
// WithDefaults.
func (c Config) Validate() error {
	if c.New && !c.Since.IsZero() {
		return errors.New("tap: Since and New: only one may be set")
	}
	return domain.CheckFields("tap", c)
}
