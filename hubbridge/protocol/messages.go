package protocol

import "encoding/json"

// Limits of the protocol.
const (
	// Version is the protocol version in a hello.
	Version = 1
	// MaxMessageEvents is the most events of one message. It must stay at or below jsapi.MaxBatch,
	// because a message is stored as one batch. Above half of it, two full messages are no longer
	// stored together. The help of `hubcloud virtualhub fleet` states the number too.
	MaxMessageEvents = 500
	// MaxMessageBytes is the most bytes of an events message.
	MaxMessageBytes = 256 << 10
	// MaxEventBytes is the most bytes of one event in its message.
	MaxEventBytes = 16 << 10
	// MaxDepth is how deep an event or a channel's value may be nested, itself counted: common
	// readers of JSON stop at about a hundred levels, and clients get the event inside a page.
	MaxDepth = 32
	// MaxUnacknowledged is the most events that a hub may send without an ack.
	MaxUnacknowledged = 2000
	// MaxNumber is the highest number (seq, oldest, newest, through): 2^53 - 1.
	MaxNumber = 1<<53 - 1
)

// Hello is sent by a hub after each connect, every 5 s until an ack arrives, and when the hub has
// dropped unacknowledged events.
type Hello struct {
	Protocol int `json:"protocol"`
	// Log is the hub's identity of its own log, [A-Za-z0-9_-]{1,64}. A new one means that the hub
	// was reset.
	Log string `json:"log"`
	// Oldest is the lowest number that the hub still holds; Newest+1 when it holds none.
	Oldest uint64 `json:"oldest"`
	// Newest is the highest number that the hub has used in this log.
	Newest       uint64    `json:"newest"`
	ClockTrusted *bool     `json:"clock_trusted"`
	Firmware     *Firmware `json:"firmware"`
	Network      *Network  `json:"network"`
	// Credentials is the version of the methods credentials.…, CredentialsVersion; 0 if the hub has
	// none of them.
	Credentials int `json:"credentials,omitempty"`
}

// CredentialsVersion is the version of the methods credentials.….
const CredentialsVersion = 1

// Firmware describes the software of a hub.
type Firmware struct {
	Version string `json:"version"`
}

// Network describes the network of a hub, as the hub reports it.
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

// Ack is sent by the cloud: every event of Log up to Through is stored.
type Ack struct {
	Log     string `json:"log"`
	Through uint64 `json:"through"`
}

// Events is sent by a hub: 1 to MaxMessageEvents events whose numbers rise by one.
type Events struct {
	Log    string  `json:"log"`
	Events []Event `json:"events"`
}

// Event is one event of a hub.
type Event struct {
	Seq          uint64          `json:"seq"`
	Type         string          `json:"type"`
	DeviceID     *int64          `json:"device_id"`
	Time         string          `json:"time"`
	ClockTrusted *bool           `json:"clock_trusted"`
	Data         json.RawMessage `json:"data"`
}

// Request is sent by the cloud to call a method of a hub.
type Request struct {
	// ID is repeated in the response.
	ID string `json:"id"`
	// Token is one or more topic levels that the hub copies into the response's topic.
	Token  string          `json:"token"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	// TimeoutMS is how long the cloud waits for the response, in milliseconds.
	TimeoutMS int64 `json:"timeout_ms"`
}

// Response is a hub's answer to a request, with exactly one of Result and Error.
type Response struct {
	ID     string          `json:"id"`
	Result json.RawMessage `json:"result,omitempty"`
	Error  *Error          `json:"error,omitempty"`
}

// Error is the error of a response.
type Error struct {
	Type    string `json:"type"`
	Message string `json:"message"`
}

// The types of errors that the protocol defines. A hub may answer with other types, which the cloud
// reports as hub_error.
const (
	ErrorNotFound       = "not_found"
	ErrorInvalidRequest = "invalid_request"
	ErrorCommandRefused = "command_refused"
	ErrorHubUnavailable = "hub_unavailable"
	ErrorSlotTaken      = "slot_taken"
	ErrorLockFull       = "lock_full"
)

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

	MethodCredentialsList   = "credentials.list"
	MethodCredentialsSet    = "credentials.set"
	MethodCredentialsRemove = "credentials.remove"
)

// methods are the methods with the types of errors that a hub may answer beside hub_unavailable.
var methods = []struct {
	name   string
	errors []string
}{
	{MethodDevicesList, nil},
	{MethodDevicesGet, []string{ErrorNotFound}},
	{MethodDevicesForget, []string{ErrorNotFound, ErrorInvalidRequest}},
	{MethodChannelsCommand, []string{ErrorNotFound, ErrorInvalidRequest, ErrorCommandRefused}},
	{MethodPairingOpen, []string{ErrorInvalidRequest}},
	{MethodPairingClose, nil},
	{MethodRemovalOpen, nil},
	{MethodRemovalClose, nil},
	{MethodCredentialsList, []string{ErrorNotFound}},
	{MethodCredentialsSet, []string{
		ErrorNotFound, ErrorInvalidRequest, ErrorCommandRefused, ErrorSlotTaken, ErrorLockFull,
	}},
	{MethodCredentialsRemove, []string{ErrorNotFound}},
}

// Methods returns every method.
func Methods() []string {
	names := make([]string, len(methods))
	for i, m := range methods {
		names[i] = m.name
	}
	return names
}

// ErrorsOf returns the types of errors that a hub may answer to a method beside hub_unavailable; ok
// is false for an unknown method.
func ErrorsOf(method string) (types []string, ok bool) {
	for _, m := range methods {
		if m.name == method {
			return m.errors, true
		}
	}
	return nil, false
}

// CredentialParams are the params of credentials.set.
type CredentialParams struct {
	DeviceID int64  `json:"device_id"`
	Slot     int64  `json:"slot"`
	Label    string `json:"label"`
	// Code is 4 to 10 digits; absent to keep the code that the slot has.
	Code       string  `json:"code,omitempty"`
	ValidFrom  *string `json:"valid_from,omitempty"`
	ValidUntil *string `json:"valid_until,omitempty"`
	// TimeZone is the IANA name of the time zone of Schedule.
	TimeZone string       `json:"time_zone,omitempty"`
	Schedule []WeeklyTime `json:"schedule,omitempty"`
}

// WeeklyTime is a time of day on days of the week: mon, tue, wed, thu, fri, sat, sun.
type WeeklyTime struct {
	Days  []string `json:"days"`
	From  string   `json:"from"`
	Until string   `json:"until"`
}

// CredentialSlots is the result of credentials.list: the slots of a lock that have a code, and how
// many it has in all.
type CredentialSlots struct {
	Slots    []int64 `json:"slots"`
	Capacity int64   `json:"capacity"`
}

// CertificateRequest is the body of POST {public}/link/v1/certificates.
type CertificateRequest struct {
	Serial string `json:"serial"`
	Secret string `json:"secret"`
	CSR    string `json:"csr"`
}

// Certificate is the answer to a CertificateRequest.
type Certificate struct {
	HubID       string `json:"hub_id"`
	Certificate string `json:"certificate"`
	CA          string `json:"ca"`
	Broker      string `json:"broker"`
	ExpiresAt   string `json:"expires_at"`
}
