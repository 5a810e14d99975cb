package virtualhub

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"net/http"
	"time"

	"hubcloud/domain"
	"hubcloud/hubbridge/protocol"
	"hubcloud/hubbridge/virtualhub/device"
)

// DeviceSpec says what a device is; see device.Spec for the fields and device.Kinds for the kinds.
type DeviceSpec = device.Spec

// Config says what hub it is. EnrollURL, Serial and Secret are needed; everything else has a
// default.
type Config struct {
	// EnrollURL is the base of the cloud's address, without /link/v1: "https://cloud.example.com".
	EnrollURL string
	// Serial is the hub's, in any case, with or without dashes.
	Serial string
	// Secret is the hub's enrolment secret.
	Secret string
	// Dir is where the hub keeps what it has over a restart: its identity, events, devices and
	// command ids. One hub at a time uses it. Empty: in memory, and a new log with every New.
	Dir string

	// Devices are what the hub has when it is new or reset; what Dir holds goes before. Nil:
	// device.Demo().
	Devices []DeviceSpec
	// Joinable are the devices that an installer has at hand, for the pairing windows. Nil:
	// device.Joinable().
	Joinable []DeviceSpec
	// Installer makes somebody act that long after a window opened: the next of Joinable joins, or
	// the button of the device that joined last is pressed. 0: nobody does; see Join and Press.
	Installer time.Duration
	// Quiet stops readings that nobody asked for.
	Quiet bool
	// Faults are faults from the start.
	Faults Faults

	// PairingWindow is how long a pairing and a removal window are open. Default 120 s.
	PairingWindow time.Duration
	// GiveUp is how long the hub tries to reach a device with a command before the channel has
	// failed. Default 10 s.
	GiveUp time.Duration
	// Capacity is the most events held until they are acknowledged. Default 10,000.
	Capacity int
	// Batch is the most events in one message, 1 to 500. Default 500.
	Batch int

	// Firmware is the version that the hub reports. Default "2.4.1".
	Firmware string
	// Network is what the hub reports as its network. Default: an ethernet with an address made
	// from the hub ID.
	Network *protocol.Network

	// HTTPClient is used to enrol. Default: a client with a time-out of 30 s.
	HTTPClient *http.Client
	// RenewBefore is how long before its certificate ends the hub enrols again. Default 30 days.
	RenewBefore time.Duration
	// EnrollEvery is how often a hub that the broker refuses enrols again, but for the first time
	// after a restart. Default 6 h.
	EnrollEvery time.Duration
	// KeepAlive of the connection, in whole seconds. Default 30 s; the hub link allows 60 s at
	// most.
	KeepAlive time.Duration
	// BackoffMin and BackoffMax bound the wait between attempts to connect and to enrol, which
	// doubles and is spread by half. Default 1 s and 30 s.
	BackoffMin, BackoffMax time.Duration

	// Log gets what the hub does. Default: nothing.
	Log *slog.Logger
}

// withDefaults checks cfg and fills in defaults.
func (cfg Config) withDefaults() (Config, domain.HubID, error) {
	id, ok := domain.ParseSerial(cfg.Serial)
	if !ok {
		return cfg, "", fmt.Errorf("%q is no Serial", cfg.Serial)
	}
	if cfg.EnrollURL == "" || cfg.Secret == "" {
		return cfg, "", errors.New("a hub needs an address to enrol at and an enrolment secret")
	}
	if cfg.Batch < 0 || cfg.Batch > protocol.MaxMessageEvents {
		return cfg, "", fmt.Errorf("batch must be from 1 to %d", protocol.MaxMessageEvents)
	}
	if cfg.KeepAlive < 0 || cfg.KeepAlive > time.Minute || cfg.KeepAlive%time.Second != 0 {
		return cfg, "", errors.New("keep-alive must be whole seconds, 60 at most")
	}
	if cfg.Devices == nil {
		cfg.Devices = device.Demo()
	}
	if cfg.Joinable == nil {
		cfg.Joinable = device.Joinable()
	}
	if cfg.Network == nil {
		cfg.Network = wired(id)
	}
	if cfg.HTTPClient == nil {
		cfg.HTTPClient = &http.Client{Timeout: 30 * time.Second}
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	cfg.Log = cfg.Log.With("hub_id", string(id))
	fill(&cfg.PairingWindow, 120*time.Second)
	fill(&cfg.GiveUp, 10*time.Second)
	fill(&cfg.Batch, protocol.MaxMessageEvents)
	fill(&cfg.Firmware, "2.4.1")
	fill(&cfg.RenewBefore, 30*24*time.Hour)
	fill(&cfg.EnrollEvery, 6*time.Hour)
	fill(&cfg.KeepAlive, 30*time.Second)
	fill(&cfg.BackoffMin, time.Second)
	fill(&cfg.BackoffMax, max(30*time.Second, cfg.BackoffMin))
	return cfg, id, nil
}

func fill[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// seed makes the same devices of one hub behave alike every time, and those of two hubs differ.
func seed(id domain.HubID) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(id)) // never fails
	return h.Sum64()
}

// wired is a plausible network for a hub: the same one every time.
func wired(id domain.HubID) *protocol.Network {
	n := seed(id)
	ip := fmt.Sprintf("10.%d.%d.%d", byte(n>>16), byte(n>>8), 2+byte(n)%250)
	mac := fmt.Sprintf("02:00:%02x:%02x:%02x:%02x", byte(n>>24), byte(n>>16), byte(n>>8), byte(n))
	return &protocol.Network{Type: "ethernet", Interface: "eth0", IPAddress: &ip, MACAddress: &mac}
}

// newLog makes the identity of a log.
func newLog() string {
	var b [9]byte
	_, _ = rand.Read(b[:]) // never fails: it ends the program instead
	return hex.EncodeToString(b[:])
}
