package fleet

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"hubcloud/hubbridge/kit/device"
	"hubcloud/hubbridge/protocol"
)

// Credentials identify a hub at its enrolment.
type Credentials struct {
	Serial string `json:"serial"`
	Secret string `json:"secret"`
}

// Config configures a Fleet. EnrollURL and Hubs are required.
type Config struct {
	// EnrollURL is the base URL of the cloud, without /link/v1.
	EnrollURL string
	// Hubs are the hubs to run.
	Hubs []Credentials
	// Devices are the devices of each hub. They report nothing by themselves but answer commands.
	// Defaults to one outlet if nil.
	Devices []device.Spec

	// Rate is the events per second that each hub emits; 0 for none. The emissions of different
	// hubs are spread over time.
	Rate float64
	// Saturate makes each hub emit as fast as the cloud acknowledges, with Depth emissions
	// unacknowledged at any time. It excludes Rate.
	Saturate bool
	// Depth is for Saturate. Depth × Batch is at most protocol.MaxUnacknowledged. Defaults to 2.
	Depth int
	// Batch is the events per emission, which is one message: 1 to protocol.MaxMessageEvents.
	// Defaults to 1. With a Rate, a hub emits every Batch/Rate seconds.
	Batch int
	// Padding is the bytes that are added to each event.
	Padding int
	// Capacity is the most unacknowledged events that each hub keeps. Defaults to 10,000.
	Capacity int

	// Parallel is how many hubs enrol or connect at the same time. Defaults to 16.
	Parallel int
	// HTTPClient is the client for enrolments. Defaults to a client with a timeout of 30 s.
	HTTPClient *http.Client
	// KeepAlive is the MQTT keep-alive, in whole seconds up to 60 s. Defaults to 30 s.
	KeepAlive time.Duration
	// EnrollEvery is the least time between enrolments of a hub that the broker rejects. Defaults
	// to 6 h.
	EnrollEvery time.Duration
	// BackoffMin and BackoffMax bound the wait between attempts to connect and to enrol. Default to
	// 1 s and 30 s.
	BackoffMin, BackoffMax time.Duration

	// Logger receives the hubs' log records. Defaults to slog.Default().
	Logger *slog.Logger
}

// WithDefaults returns a copy of cfg with every default filled in, except for Capacity, whose
// default is that of the journal.
func (cfg Config) WithDefaults() Config {
	if cfg.Devices == nil {
		cfg.Devices = []device.Spec{{Kind: "outlet"}}
	}
	if cfg.HTTPClient == nil {
		cfg.HTTPClient = &http.Client{Timeout: 30 * time.Second}
	}
	cfg.Depth = cmp.Or(cfg.Depth, 2)
	cfg.Batch = cmp.Or(cfg.Batch, 1)
	cfg.Parallel = cmp.Or(cfg.Parallel, 16)
	cfg.KeepAlive = cmp.Or(cfg.KeepAlive, 30*time.Second)
	cfg.EnrollEvery = cmp.Or(cfg.EnrollEvery, 6*time.Hour)
	cfg.BackoffMin = cmp.Or(cfg.BackoffMin, time.Second)
	cfg.BackoffMax = cmp.Or(cfg.BackoffMax, max(30*time.Second, cfg.BackoffMin))
	cfg.Logger = cmp.Or(cfg.Logger, slog.Default())
	return cfg
}

// Validate returns an error that names the first invalid field. The hubs' credentials and devices
// are validated by New.
func (cfg Config) Validate() error {
	switch {
	case cfg.EnrollURL == "":
		return errors.New("enroll url: must not be empty")
	case cfg.Rate < 0:
		return errors.New("rate: must not be negative")
	case cfg.Rate > 0 && cfg.Saturate:
		return errors.New("rate: must be 0 with saturate")
	case cfg.Batch < 1 || cfg.Batch > protocol.MaxMessageEvents:
		return fmt.Errorf("batch: is %d, must be 1 to %d", cfg.Batch, protocol.MaxMessageEvents)
	case cfg.Depth < 1 || cfg.Depth*cfg.Batch > protocol.MaxUnacknowledged:
		return fmt.Errorf("depth × batch: must be 1 to %d", protocol.MaxUnacknowledged)
	case cfg.Padding < 0 || cfg.Padding > protocol.MaxEventBytes/2:
		return fmt.Errorf("padding: is %d, must be 0 to %d", cfg.Padding, protocol.MaxEventBytes/2)
	case cfg.Parallel < 1:
		return errors.New("parallel: must be at least 1")
	case cfg.KeepAlive <= 0 || cfg.KeepAlive > time.Minute || cfg.KeepAlive%time.Second != 0:
		return fmt.Errorf("keep-alive: is %v, must be whole seconds from 1s to 60s", cfg.KeepAlive)
	}
	return nil
}

// messageBatch is the most events per message. A hub that lags behind sends large messages, unless
// the batch is what is measured.
func (cfg Config) messageBatch() int {
	if cfg.Saturate {
		return cfg.Batch
	}
	return protocol.MaxMessageEvents
}
