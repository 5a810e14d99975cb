package virtualhub

import (
	"cmp"
	"log/slog"
	"time"

	"hubcloud/domain"
	"hubcloud/hubbridge/kit/hub"
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
	// Config is the library's. The hub sets Handler itself. Firmware defaults to "2.4.1",
	// Network to an Ethernet interface whose addresses are derived from the hub id. Dir also keeps
	// the devices.
	hub.Config

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
	network.open = cfg.Dial
	cfg.Handler, cfg.Dial = handler, network.dial
	return cfg.Config
}
