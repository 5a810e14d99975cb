package controller

import (
	"cmp"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"time"

	"hubcloud/domain"
	"hubcloud/hubbridge/kit/device"
	"hubcloud/hubbridge/protocol"
)

// Config configures a Controller. HubID is required.
type Config struct {
	HubID domain.HubID
	// Durable stores the devices in the engine's entries, from which New restores them.
	Durable bool

	// Devices are the devices of a new or reset hub. Stored devices take precedence. Defaults to
	// device.Demo() if nil.
	Devices []device.Spec
	// Joinable are the devices that the installer makes join, in turn. Defaults to
	// device.Joinable() if nil.
	Joinable []device.Spec
	// Installer is how long after a window opens a simulated installer acts: the next device of
	// Joinable joins, or the device that joined last is removed. 0 disables the installer.
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

	// Now returns the time of requests. Defaults to time.Now.
	Now func() time.Time
	// Logger receives failures. Defaults to slog.Default().
	Logger *slog.Logger
}

// WithDefaults returns a copy of cfg with the defaults for zero fields.
func (cfg Config) WithDefaults() Config {
	if cfg.Devices == nil {
		cfg.Devices = device.Demo()
	}
	if cfg.Joinable == nil {
		cfg.Joinable = device.Joinable()
	}
	cfg.PairingWindow = cmp.Or(cfg.PairingWindow, 120*time.Second)
	cfg.GiveUp = cmp.Or(cfg.GiveUp, 10*time.Second)
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	cfg.Logger = cmp.Or(cfg.Logger, slog.Default())
	return cfg
}

// Validate returns an error that names the first invalid field. Devices are validated by New.
func (cfg Config) Validate() error {
	if cfg.HubID == "" {
		return errors.New("hub id: must not be empty")
	}
	return nil
}

// seed returns the seed of a hub's devices: they behave the same in every run, and differ from
// those of other hubs.
func seed(id domain.HubID) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(id)) // never fails
	return h.Sum64()
}

// Network returns a network whose addresses are derived from the hub id.
func Network(id domain.HubID) *protocol.Network {
	n := seed(id)
	ip := fmt.Sprintf("10.%d.%d.%d", byte(n>>16), byte(n>>8), 2+byte(n)%250)
	mac := fmt.Sprintf("02:00:%02x:%02x:%02x:%02x", byte(n>>24), byte(n>>16), byte(n>>8), byte(n))
	return &protocol.Network{Type: "ethernet", Interface: "eth0", IPAddress: &ip, MACAddress: &mac}
}
