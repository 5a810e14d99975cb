package codec

import (
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"hubcloud/domain"
	"hubcloud/hubbridge/protocol"
)

// Errors of ParseHello.
var (
	// ErrHello is the error of a hello that is not an object, or whose log, oldest or newest is
	// invalid.
	ErrHello = errors.New("unreadable hello")
	// ErrProtocol is the error of a hello of another version of the hub protocol.
	ErrProtocol = errors.New("hello of another protocol version")
)

const (
	// maxHelloBytes bounds a hello: many times the size of a usual one.
	maxHelloBytes = 64 << 10
	// maxText bounds the texts about firmware and network, in characters.
	maxText = 200
)

// Hello is a decoded hello.
type Hello struct {
	// Log is the hub's identity of its own log.
	Log string
	// Oldest is at least 1, and at most Newest+1.
	Oldest uint64
	Newest uint64
	// Firmware is the contract's object; nil if the hub reported none that is valid.
	Firmware json.RawMessage
	// Network is nil if the hub reported none that is valid.
	Network *protocol.Network
	// Credentials is whether the hub sets codes of locks.
	Credentials bool
}

// ParseHello decodes a hello. The error is ErrHello or ErrProtocol. Invalid firmware or network is
// not an error, so that it cannot block the hub. An oldest of 0, from a hub without events, becomes
// 1: there is no event 0.
func ParseHello(message []byte) (Hello, error) {
	var members map[string]json.RawMessage
	if len(message) > maxHelloBytes || json.Unmarshal(WithoutBOM(message), &members) != nil {
		return Hello{}, ErrHello
	}
	version, ok := parseNumber(members["protocol"])
	if !ok {
		return Hello{}, ErrHello
	}
	if version != protocol.Version {
		return Hello{}, ErrProtocol
	}
	var h Hello
	oldest, ok1 := parseNumber(members["oldest"])
	newest, ok2 := parseNumber(members["newest"])
	if !ok1 || !ok2 || json.Unmarshal(members["log"], &h.Log) != nil || !ValidLog([]byte(h.Log)) || oldest > newest+1 {
		return Hello{}, ErrHello
	}
	h.Oldest, h.Newest = max(oldest, 1), newest
	h.Firmware = parseFirmware(members["firmware"])
	h.Network = parseNetwork(members["network"])
	credentials, ok := parseNumber(members["credentials"])
	h.Credentials = ok && credentials >= protocol.CredentialsVersion
	return h, nil
}

// parseFirmware returns the contract's object of the firmware; nil if it is invalid.
func parseFirmware(raw json.RawMessage) json.RawMessage {
	members := parseMembers(raw)
	version := parseShortText(members["version"])
	if version == nil || *version == "" {
		return nil
	}
	out, err := json.Marshal(protocol.Firmware{Version: *version})
	if err != nil {
		return nil
	}
	return out
}

// parseNetwork decodes the network; nil if its type is not one of the contract's. Other invalid
// members are null.
func parseNetwork(raw json.RawMessage) *protocol.Network {
	members := parseMembers(raw)
	kind := parseShortText(members["type"])
	if kind == nil || !slices.Contains([]string{"wifi", "ethernet", "cellular"}, *kind) {
		return nil
	}
	n := &protocol.Network{
		Type:        *kind,
		IPAddress:   parseShortText(members["ip_address"]),
		IPv6Address: parseShortText(members["ipv6_address"]),
		MACAddress:  parseShortText(members["mac_address"]),
		SSID:        parseShortText(members["ssid"]),
		Carrier:     parseShortText(members["carrier"]),
		Radio:       parseShortText(members["radio"]),
		Metered:     string(members["metered"]) == "true",
	}
	if name := parseShortText(members["interface"]); name != nil {
		n.Interface = *name
	}
	if dbm, err := strconv.Atoi(string(members["signal_dbm"])); err == nil {
		n.SignalDBM = &dbm
	}
	return n
}

// MarshalNetwork returns the contract's object of a network; nil for nil.
func MarshalNetwork(n *protocol.Network, reportedAt time.Time) json.RawMessage {
	if n == nil {
		return nil
	}
	out, err := json.Marshal(struct {
		protocol.Network
		ReportedAt string `json:"reported_at"`
	}{*n, domain.FormatTime(reportedAt)})
	if err != nil {
		return nil
	}
	return out
}

// parseMembers returns the members of an object; nil for another value.
func parseMembers(raw json.RawMessage) (members map[string]json.RawMessage) {
	if json.Unmarshal(raw, &members) != nil {
		return nil
	}
	return members
}

// parseShortText returns a string; nil for another value, and for a text that is too long or has
// control characters.
func parseShortText(raw json.RawMessage) *string {
	var s *string
	if json.Unmarshal(raw, &s) != nil || s == nil || utf8.RuneCountInString(*s) > maxText ||
		slices.ContainsFunc([]rune(*s), isControl) {
		return nil
	}
	return s
}

func isControl(r rune) bool { return r < 0x20 || r == 0x7f }
