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
}

// ParseHello decodes a hello. The error is ErrHello or ErrProtocol. Invalid firmware or network is
// not an error, so that it cannot block the hub. An oldest of 0, from a hub without events, becomes
// 1: there is no event 0.
func ParseHello(message []byte) (Hello, error) {
	var members map[string]json.RawMessage
	if len(message) > maxHelloBytes || json.Unmarshal(message, &members) != nil {
		return Hello{}, ErrHello
	}
	version, ok := number(members["protocol"])
	if !ok {
		return Hello{}, ErrHello
	}
	if version != protocol.Version {
		return Hello{}, ErrProtocol
	}
	var h Hello
	oldest, ok1 := number(members["oldest"])
	newest, ok2 := number(members["newest"])
	if !ok1 || !ok2 || json.Unmarshal(members["log"], &h.Log) != nil || !ValidLog([]byte(h.Log)) ||
		oldest > newest+1 {
		return Hello{}, ErrHello
	}
	h.Oldest, h.Newest = max(oldest, 1), newest
	h.Firmware = firmware(members["firmware"])
	h.Network = network(members["network"])
	return h, nil
}

// firmware returns the contract's object of the firmware; nil if it is invalid.
func firmware(raw json.RawMessage) json.RawMessage {
	members := object(raw)
	version := text(members["version"])
	if version == nil || *version == "" {
		return nil
	}
	out, err := json.Marshal(protocol.Firmware{Version: *version})
	if err != nil {
		return nil
	}
	return out
}

// network decodes the network; nil if its type is not one of the contract's. Other invalid members
// are null.
func network(raw json.RawMessage) *protocol.Network {
	members := object(raw)
	kind := text(members["type"])
	if kind == nil || !slices.Contains([]string{"wifi", "ethernet", "cellular"}, *kind) {
		return nil
	}
	n := &protocol.Network{
		Type:        *kind,
		IPAddress:   text(members["ip_address"]),
		IPv6Address: text(members["ipv6_address"]),
		MACAddress:  text(members["mac_address"]),
		SSID:        text(members["ssid"]),
		Carrier:     text(members["carrier"]),
		Radio:       text(members["radio"]),
		Metered:     string(members["metered"]) == "true",
	}
	if name := text(members["interface"]); name != nil {
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

// object returns the members of an object; nil for another value.
func object(raw json.RawMessage) (members map[string]json.RawMessage) {
	if json.Unmarshal(raw, &members) != nil {
		return nil
	}
	return members
}

// text returns a string; nil for another value, and for a text that is too long or has control
// characters.
func text(raw json.RawMessage) *string {
	var s *string
	if json.Unmarshal(raw, &s) != nil || s == nil || utf8.RuneCountInString(*s) > maxText ||
		slices.ContainsFunc([]rune(*s), isControl) {
		return nil
	}
	return s
}

func isControl(r rune) bool { return r < 0x20 || r == 0x7f }
