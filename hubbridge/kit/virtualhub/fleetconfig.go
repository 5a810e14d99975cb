package virtualhub

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net/http"

	"hubcloud/hubbridge/protocol"
)

// Credentials identify a hub at its enrolment.
type Credentials struct {
	Serial string `json:"serial"`
	Secret string `json:"secret"`
}

// FleetConfig configures a Fleet. EnrollURL and Hubs are required.
type FleetConfig struct {
	// EnrollURL is the base URL of the cloud, without /link/v1.
	EnrollURL string
	// Hubs are the hubs to run. Each has one device, an outlet.
	Hubs []Credentials
	// Rate is the events per second that each hub emits, spread over time. 0 is as many as the
	// cloud acknowledges: each hub has two batches unacknowledged at any time.
	Rate float64
	// Batch is the events per emission, which is one message: 1 to protocol.MaxMessageEvents.
	// Defaults to 1. With a Rate, a hub emits every Batch/Rate seconds.
	Batch int
	// HTTPClient is the client for enrolments. Defaults to one with a timeout of 30 s.
	HTTPClient *http.Client
	// Logger receives the hubs' log records. Defaults to slog.Default().
	Logger *slog.Logger
}

const (
	// depth is how many batches of a hub await their ack when the cloud sets the rate.
	depth = 2
	// parallel is how many hubs enrol or connect at the same time.
	parallel = 16
)

// WithDefaults returns a copy of cfg with the defaults of fields that the hubs do not fill in.
func (cfg FleetConfig) WithDefaults() FleetConfig {
	cfg.Batch = cmp.Or(cfg.Batch, 1)
	cfg.Logger = cmp.Or(cfg.Logger, slog.Default())
	return cfg
}

// Validate returns an error that names the first invalid field. The hubs' credentials are validated
// by NewFleet.
func (cfg FleetConfig) Validate() error {
	switch {
	case cfg.EnrollURL == "":
		return errors.New("enroll url: must not be empty")
	case cfg.Rate < 0:
		return errors.New("rate: must not be negative")
	case cfg.Batch < 1 || cfg.Batch > protocol.MaxMessageEvents:
		return fmt.Errorf("batch: is %d, must be 1 to %d", cfg.Batch, protocol.MaxMessageEvents)
	}
	return nil
}

// messageBatch is the most events per message. A hub that lags behind sends large messages, unless
// the batch is what is measured.
func (cfg FleetConfig) messageBatch() int {
	if cfg.Rate == 0 {
		return cfg.Batch
	}
	return protocol.MaxMessageEvents
}
