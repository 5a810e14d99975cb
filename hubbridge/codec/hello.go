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

// What is wrong with a hello that is to be passed over.
var (
	// ErrHello says that it is no object, or log, oldest or newest cannot be read or do not fit
	// together.
	ErrHello = errors.New("unreadable hello")
	// ErrProtocol says that it is of another version of the hub link.
	ErrProtocol = errors.New("hello of another protocol version")
)

const (
	// maxHelloBytes bounds a hello: many times what its members can take.
	maxHelloBytes = 64 << 10
	// maxText bounds, in characters, the texts about firmware and network that are kept of a hello.
	maxText = 200
)

// Hello is a hello that could be read.
type Hello struct {
	Log string
	// Oldest is at least 1, and at most Newest+1.
	Oldest uint64
	Newest uint64
	// Firmware and Network are as the contract writes them, network without reported_at; nil when
	// the hub did not say, or not in a form that can be shown.
	Firmware json.RawMessage
	Network  *protocol.Network
}

// ParseHello reads a hello. Its errors are ErrHello and ErrProtocol. What a hub says about its
// firmware and network never makes it fail: what cannot be shown is nil. An oldest of 0, from a hub
// that has no event yet, is 1: there is no event 0.
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

// firmware gives the firmware as the contract writes it.
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

// network reads what the hub says of its network. A member that may be null is null when it cannot
// be read; without a type that the contract knows there is nothing to show.
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

// Network gives a network as the contract writes it; nil for none.
func Network(n *protocol.Network, reportedAt time.Time) json.RawMessage {
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

func object(raw json.RawMessage) (members map[string]json.RawMessage) {
	if json.Unmarshal(raw, &members) != nil {
		return nil
	}
	return members
}

// text reads a string that can be shown: at most maxText characters, none of them control
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
