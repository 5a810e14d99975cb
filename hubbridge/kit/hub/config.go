package hub

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"golang.org/x/sync/semaphore"

	"hubcloud/domain"
	"hubcloud/hubbridge/protocol"
)

// Config configures a Hub. EnrollURL, Serial, Secret and Handler are required.
type Config struct {
	// EnrollURL is the base URL of the cloud, without /link/v1: "https://cloud.example.com".
	EnrollURL string
	// Serial is the hub's serial, in any case, with or without dashes.
	Serial string
	// Secret is the hub's enrolment secret.
	Secret string
	// Handler answers the cloud's requests.
	Handler Handler
	// Dir keeps the hub's identity, events, entries and command ids over a restart. Only one Hub
	// may use it at a time. Empty keeps them in memory, with a new hub log per Hub.
	Dir string

	// Capacity is the most unacknowledged events that the hub keeps. Defaults to 10,000.
	Capacity int
	// Batch is the most events per message. Defaults to protocol.MaxMessageEvents, the most
	// allowed.
	Batch int
	// Firmware is the version in the hello. Defaults to "1.0.0".
	Firmware string
	// Network is the network in the hello. Defaults to the first interface that is up and has an
	// address.
	Network *protocol.Network

	// HTTPClient is the client for enrolments. Defaults to a client with a timeout of 30 s.
	HTTPClient *http.Client
	// Dial opens the TCP connection to the broker. Defaults to a net.Dialer's.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// RenewBefore is how long before its certificate expires the hub enrols again. Defaults to 30
	// days.
	RenewBefore time.Duration
	// EnrollEvery is the least time between enrolments of a hub that the broker rejects, except for
	// the first after a restart. A hub that does not trust the broker waits for a sixth of it.
	// Defaults to 6 h.
	EnrollEvery time.Duration
	// KeepAlive is the MQTT keep-alive, in whole seconds up to 60 s. Defaults to 30 s.
	KeepAlive time.Duration
	// BackoffMin and BackoffMax bound the wait between attempts to connect and to enrol. Default to
	// 1 s and 30 s.
	BackoffMin, BackoffMax time.Duration

	// Slots bounds how many hubs of one process enrol or connect at the same time. Defaults to no
	// bound.
	Slots *semaphore.Weighted

	// OnAck is called with each acknowledged number of the hub's log, by one goroutine at a time.
	// It must not block. Defaults to nothing.
	OnAck func(through uint64)
	// OnMessage is called with each message of the protocol that the hub sends or receives, in
	// either order and by several goroutines. It must not block or change the payload. Defaults to
	// nothing.
	OnMessage func(topic string, payload []byte)
	// Logger receives the hub's log records. Defaults to slog.Default().
	Logger *slog.Logger
}

// WithDefaults returns a copy of cfg with every default filled in.
func (cfg Config) WithDefaults() Config {
	cfg.Capacity = cmp.Or(cfg.Capacity, defaultCapacity)
	cfg.Batch = cmp.Or(cfg.Batch, protocol.MaxMessageEvents)
	cfg.Firmware = cmp.Or(cfg.Firmware, "1.0.0")
	if cfg.Network == nil {
		cfg.Network = localNetwork()
	}
	if cfg.HTTPClient == nil {
		cfg.HTTPClient = &http.Client{Timeout: 30 * time.Second}
	}
	if cfg.Dial == nil {
		cfg.Dial = new(net.Dialer).DialContext
	}
	cfg.RenewBefore = cmp.Or(cfg.RenewBefore, 30*24*time.Hour)
	cfg.EnrollEvery = cmp.Or(cfg.EnrollEvery, 6*time.Hour)
	cfg.KeepAlive = cmp.Or(cfg.KeepAlive, 30*time.Second)
	cfg.BackoffMin = cmp.Or(cfg.BackoffMin, time.Second)
	cfg.BackoffMax = cmp.Or(cfg.BackoffMax, max(30*time.Second, cfg.BackoffMin))
	if cfg.OnAck == nil {
		cfg.OnAck = func(uint64) {}
	}
	if cfg.OnMessage == nil {
		cfg.OnMessage = func(string, []byte) {}
	}
	cfg.Logger = cmp.Or(cfg.Logger, slog.Default())
	return cfg
}

// Validate returns an error that names the first invalid field.
func (cfg Config) Validate() error {
	if _, ok := domain.ParseSerial(cfg.Serial); !ok {
		return fmt.Errorf("serial: %q must be a serial, such as HUB-7K2M-Q4XD-93TA", cfg.Serial)
	}
	if cfg.EnrollURL == "" {
		return errors.New("enroll url: must not be empty")
	}
	if cfg.Secret == "" {
		return errors.New("secret: must not be empty")
	}
	if cfg.Handler == nil {
		return errors.New("handler: must not be nil")
	}
	if cfg.Batch < 1 || cfg.Batch > protocol.MaxMessageEvents {
		return fmt.Errorf("batch: is %d, must be 1 to %d", cfg.Batch, protocol.MaxMessageEvents)
	}
	if cfg.KeepAlive <= 0 || cfg.KeepAlive > time.Minute || cfg.KeepAlive%time.Second != 0 {
		return fmt.Errorf("keep-alive: is %v, must be whole seconds from 1s to 60s", cfg.KeepAlive)
	}
	return nil
}
