package virtualhub

import (
	"cmp"
	"log/slog"
	"net/http"
	"time"

	"golang.org/x/sync/semaphore"

	"hubcloud/domain"
	"hubcloud/hubbridge/kit/hub"
	"hubcloud/hubbridge/protocol"
)

// Types of package hub that are part of this package's API.
type (
	// Event is an event for Emit.
	Event = hub.Event
	// Status is a hub's position in its log.
	Status = hub.Status
)

// Config configures a Hub. EnrollURL, Serial and Secret are required.
type Config struct {
	// EnrollURL is the base URL of the cloud, without /link/v1: "https://cloud.example.com".
	EnrollURL string
	// Serial is the hub's serial, in any case, with or without dashes.
	Serial string
	// Secret is the hub's enrolment secret.
	Secret string
	// Dir keeps the hub's identity, events, devices and command ids over a restart. Only one Hub
	// may use it at a time. Empty keeps them in memory, with a new hub log per Hub.
	Dir string

	// Devices are the devices of a new or reset hub. Devices in Dir take precedence. Defaults to
	// DemoDevices() if nil.
	Devices []DeviceSpec
	// Joinable are the devices that the installer makes join, in turn. Defaults to
	// joinableDevices() if nil.
	Joinable []DeviceSpec
	// Installer is how long after a window opens a simulated installer acts: the next device of
	// Joinable joins, or the device that joined last is removed. 0 disables the installer; see Join
	// and Press.
	Installer time.Duration
	// Quiet disables readings that no command or report caused.
	Quiet bool
	// Faults are the faults from the start.
	Faults Faults

	// PairingWindow is how long pairing and removal windows stay open. Defaults to 120 s.
	PairingWindow time.Duration
	// GiveUp is how long the hub tries to reach a device with a command before the channel fails.
	// Defaults to 10 s.
	GiveUp time.Duration
	// Capacity is the most unacknowledged events that the hub keeps. Defaults to 10,000.
	Capacity int
	// Batch is the most events per message. Defaults to protocol.MaxMessageEvents, the most
	// allowed.
	Batch int

	// Firmware is the version in the hello. Defaults to "2.4.1".
	Firmware string
	// Network is the network in the hello. Defaults to an Ethernet interface whose addresses are
	// derived from the hub id.
	Network *protocol.Network

	// HTTPClient is the client for enrolments. Defaults to a client with a timeout of 30 s.
	HTTPClient *http.Client
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
	// OnMessage is called with each message of the protocol that the hub sends or receives, by
	// several goroutines. It must not block or change the payload. Defaults to nothing.
	OnMessage func(topic string, payload []byte)
	// Logger receives the hub's log records. Defaults to slog.Default().
	Logger *slog.Logger
}

// WithDefaults returns a copy of cfg with the defaults of the fields that the hub library does not
// fill in.
func (cfg Config) WithDefaults() Config {
	cfg.Firmware = cmp.Or(cfg.Firmware, "2.4.1")
	if cfg.Devices == nil {
		cfg.Devices = DemoDevices()
	}
	if cfg.Joinable == nil {
		cfg.Joinable = joinableDevices()
	}
	cfg.PairingWindow = cmp.Or(cfg.PairingWindow, 120*time.Second)
	cfg.GiveUp = cmp.Or(cfg.GiveUp, 10*time.Second)
	cfg.Logger = cmp.Or(cfg.Logger, slog.Default())
	return cfg
}

func (cfg Config) hubConfig(handler hub.Handler, network *faultyNetwork) hub.Config {
	if cfg.Network == nil {
		if id, ok := domain.ParseSerial(cfg.Serial); ok {
			cfg.Network = simulatedNetwork(id)
		}
	}
	return hub.Config{
		EnrollURL: cfg.EnrollURL, Serial: cfg.Serial, Secret: cfg.Secret, Handler: handler,
		Dir: cfg.Dir, Capacity: cfg.Capacity, Batch: cfg.Batch,
		Firmware: cfg.Firmware, Network: cfg.Network,
		HTTPClient: cfg.HTTPClient, Dial: network.dial,
		RenewBefore: cfg.RenewBefore, EnrollEvery: cfg.EnrollEvery, KeepAlive: cfg.KeepAlive,
		BackoffMin: cfg.BackoffMin, BackoffMax: cfg.BackoffMax,
		Slots: cfg.Slots, OnAck: cfg.OnAck, OnMessage: cfg.OnMessage, Logger: cfg.Logger,
	}
}
