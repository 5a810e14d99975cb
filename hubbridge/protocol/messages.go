package protocol

import "encoding/json"

// Limits of the link.
const (
	// Version is the version that a hello names.
	Version = 1
	// MaxMessageEvents is the most events that one message may hold.
	MaxMessageEvents = 500
	// MaxMessageBytes is the most bytes that an events message may have.
	MaxMessageBytes = 256 << 10
	// MaxEventBytes is the most bytes that one event may have, as it stands in its message.
	MaxEventBytes = 16 << 10
	// MaxUnacknowledged is the most events that a hub may have sent without an ack.
	MaxUnacknowledged = 2000
	// MaxNumber is the highest number (seq, oldest, newest, through): 2^53 - 1.
	MaxNumber = 1<<53 - 1
)

// Hello is what a hub says after each connect, every 5 s until an ack arrives, and when it has
// dropped unacknowledged events.
type Hello struct {
	Protocol int `json:"protocol"`
	// Log is the identity of the hub's log, [A-Za-z0-9_-]{1,64}; a new one means that the hub was
	// reset.
	Log string `json:"log"`
	// Oldest is the lowest number that the hub still holds; Newest+1 when it holds none.
	Oldest uint64 `json:"oldest"`
	// Newest is the highest number that the hub ever gave in this log.
	Newest       uint64    `json:"newest"`
	ClockTrusted *bool     `json:"clock_trusted"`
	Firmware     *Firmware `json:"firmware"`
	Network      *Network  `json:"network"`
}

// Firmware is what the hub runs.
type Firmware struct {
	Version string `json:"version"`
}

// Network is the network that the hub is on, by its own word.
type Network struct {
	Type        string  `json:"type"`
	Interface   string  `json:"interface"`
	IPAddress   *string `json:"ip_address"`
	IPv6Address *string `json:"ipv6_address"`
	MACAddress  *string `json:"mac_address"`
	SSID        *string `json:"ssid"`
	SignalDBM   *int    `json:"signal_dbm"`
	Carrier     *string `json:"carrier"`
	Radio       *string `json:"radio"`
	Metered     bool    `json:"metered"`
}

// Ack says that every event of Log up to Through is stored.
type Ack struct {
	Log     string `json:"log"`
	Through uint64 `json:"through"`
}

// Events is a hub's message of 1 to 500 events whose numbers rise by one.
type Events struct {
	Log    string  `json:"log"`
	Events []Event `json:"events"`
}

// Event is one event as a hub sends it.
type Event struct {
	Seq          uint64          `json:"seq"`
	Type         string          `json:"type"`
	DeviceID     *int64          `json:"device_id"`
	Time         string          `json:"time"`
	ClockTrusted *bool           `json:"clock_trusted"`
	Data         json.RawMessage `json:"data"`
}

// Request is what the cloud asks of a hub. Token is one or more topic levels that the hub copies
// into the response's topic.
type Request struct {
	ID        string          `json:"id"`
	Token     string          `json:"token"`
	Method    string          `json:"method"`
	Params    json.RawMessage `json:"params"`
	TimeoutMS int64           `json:"timeout_ms"`
}

// Response is a hub's answer: exactly one of Result and Error.
type Response struct {
	ID     string          `json:"id"`
	Result json.RawMessage `json:"result,omitempty"`
	Error  *Error          `json:"error,omitempty"`
}

// Error is a hub's refusal.
type Error struct {
	Type    string `json:"type"`
	Message string `json:"message"`
}

// The methods of a hub.
const (
	MethodDevicesList     = "devices.list"
	MethodDevicesGet      = "devices.get"
	MethodDevicesForget   = "devices.forget"
	MethodChannelsCommand = "channels.command"
	MethodPairingOpen     = "pairing.open"
	MethodPairingClose    = "pairing.close"
	MethodRemovalOpen     = "removal.open"
	MethodRemovalClose    = "removal.close"
)

// Methods gives every method.
func Methods() []string {
	return []string{
		MethodDevicesList, MethodDevicesGet, MethodDevicesForget, MethodChannelsCommand,
		MethodPairingOpen, MethodPairingClose, MethodRemovalOpen, MethodRemovalClose,
	}
}

// CertificateRequest is the body of POST {public}/link/v1/certificates.
type CertificateRequest struct {
	Serial string `json:"serial"`
	Secret string `json:"secret"`
	CSR    string `json:"csr"`
}

// Certificate is its answer.
type Certificate struct {
	HubID       string `json:"hub_id"`
	Certificate string `json:"certificate"`
	CA          string `json:"ca"`
	Broker      string `json:"broker"`
	ExpiresAt   string `json:"expires_at"`
}
