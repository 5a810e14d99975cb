package check

import (
	"fmt"
	"slices"
	"strings"

	"hubcloud/hubbridge/protocol"
)

// Line is one line of the list: a property of the hub that is checked.
type Line struct {
	// ID names the line, such as "hello-repeats".
	ID string
	// Title states what a right hub does.
	Title string
	// Rules are the IDs of the protocol's rules that the line checks. The first is the main one.
	Rules []string
	// Optional lines may end as not seen without making the check fail: what they are about need
	// not happen.
	Optional bool
	// Recommended lines may fail or end as not seen without making the check fail: the protocol
	// recommends what they are about (SHOULD).
	Recommended bool

	// steps are the steps of the script that the line needs. A line without steps is observed from
	// the first packets on.
	steps []string
}

// Sentence returns the text of the line's main rule.
func (l Line) Sentence() string { return protocol.Sentence(l.Rules[0]) }

// kind is whether a line must pass.
type kind int

const (
	required kind = iota
	optional
	recommended
)

// table is the list: for each line its ID, its kind and what a right hub does, then its rules and
// the steps of the script that it needs. `hub check` prints it with --list and --help, and the page of
// the protocol has it.
var table = []struct {
	id           string
	kind         kind
	title        string
	rules, steps string // separated by spaces
}{
	{"enrols", required, "enrols with its serial, secret and a certificate request",
		"R-enrol-1 R-enrol-2", ""},
	{"connects", required, "connects with MQTT 3.1.1 over TLS and its certificate",
		"R-connect-1", ""},
	{"client-id", required, "uses its hub ID as client ID",
		"R-connect-2", ""},
	{"clean-session", required, "connects with a clean session",
		"R-connect-3", ""},
	{"keep-alive", required, "has a keep-alive from 1 to 60 s, and keeps to it",
		"R-connect-4", ""},
	{"no-qos-2", required, "publishes with QoS 0 or 1",
		"R-connect-5", ""},
	{"no-retain", required, "retains no message and sets no will",
		"R-connect-6", ""},
	{"own-topics", required, "uses its own topics only",
		"R-connect-7", ""},
	{"one-connection", required, "has one connection at a time",
		"R-connect-9", ""},
	{"subscribes-first", required, "subscribes to ack and request before its hello",
		"R-hello-1", ""},
	{"renews-certificate", required, "renews a certificate with less than 30 days left",
		"R-enrol-4", "cut"},
	{"current-certificate", required, "connects with the certificate issued last",
		"R-enrol-3", "cut"},
	{"survives-cut", required, "connects again after a cut connection",
		"R-connect-8", "cut"},
	{"survives-takeover", required, "connects again after a takeover",
		"R-connect-8 R-connect-9", "takeover"},
	{"survives-rejection", required, "connects again after a rejected connection",
		"R-connect-8 R-enrol-5", "reject"},
	{"verifies-broker", required, "connects to no broker whose certificate ca does not verify",
		"R-connect-1", "stranger"},
	{"recovers-ca", recommended, "enrols again when ca does not verify the broker",
		"R-enrol-7", "stranger"},
	{"waits-to-reconnect", recommended, "waits before it connects again",
		"R-connect-8", "cut takeover reject"},
	{"hello-fields", required, "sends a hello with the required members",
		"R-hello-2 R-hello-3 R-json-3", ""},
	{"hello-info", recommended, "reports firmware, network and clock_trusted",
		"R-hello-7", ""},
	{"hello-repeats", required, "repeats its hello every 5 s until an ack",
		"R-hello-4", "hello"},
	{"no-events-before-ack", required, "sends no events before the ack of its hello",
		"R-hello-5", "cut"},
	{"log-identity", required, "keeps the identity of its log",
		"R-log-2", "cut"},
	{"numbering", required, "numbers its events without gaps",
		"R-log-1", "commands"},
	{"events-message", required, "sends 1 to 500 events with rising numbers in a message",
		"R-events-1 R-json-1", "commands"},
	{"message-size", required, "sends messages of at most 256 KiB",
		"R-events-2", "commands"},
	{"event-size", required, "sends events of at most 16 KiB",
		"R-events-3", "commands"},
	{"event-form", required, "sends well-formed events",
		"R-events-8 R-time-1 R-json-4", "commands"},
	{"reserved-types", required, "sends no event types of the cloud",
		"R-events-9", "commands"},
	{"event-data", optional, "sends the data of each type of event",
		"R-type-4 R-join-1 R-join-2 R-join-3", "commands"},
	{"channel-values", optional, "reports values in the form of their channel's key",
		"R-channel-5", "devices commands"},
	{"resends", required, "sends again after 5 s without an ack",
		"R-events-5", "withhold"},
	{"sends-from-through", required, "sends again from through + 1",
		"R-ack-1", "withhold"},
	{"same-content", required, "sends an event again with the same content",
		"R-events-7", "withhold"},
	{"unknown-log", required, "ignores an ack of an unknown log",
		"R-ack-3", "unknown-log"},
	{"lower-through", required, "ignores a lower through within a connection",
		"R-ack-2", "lower"},
	{"resends-after-gap", required, "sends again at once when an ack shows a gap",
		"R-events-6", "gap"},
	{"keeps-events", required, "keeps events until an ack covers them",
		"R-log-3", "cut"},
	{"continues-after-cut", required, "goes on from through + 1 after a cut",
		"R-ack-1", "cut"},
	{"send-window", optional, "has at most 2,000 events unacknowledged",
		"R-events-4", "full"},
	{"survives-full-queue", optional, "empties its queue once acks arrive",
		"R-events-4 R-log-3 R-hello-6", "full"},
	{"restored-cloud", required, "accepts a lower through after a new hello",
		"R-ack-4 R-ack-2", "takeover"},
	{"higher-through", required, "goes on after a higher through",
		"R-ack-5", "reject"},
	{"unknown-members", required, "ignores members that it does not know",
		"R-json-2", "members reject"},
	{"response-topic", required, "answers on the topic of the request's token",
		"R-request-1", "devices"},
	{"response-form", required, "answers with id and result or error",
		"R-request-2 R-error-1 R-request-5", "devices"},
	{"unknown-method", required, "answers an unknown method with an error",
		"R-request-6", "unknown-method"},
	{"side-by-side", required, "answers many requests side by side",
		"R-request-3 R-request-4", "side-by-side"},
	{"devices.list", required, "lists its devices, without values",
		"R-list-1 R-device-1 R-channel-1 R-channel-2", "devices"},
	{"devices.get", required, "returns a device with values",
		"R-get-1 R-channel-3 R-channel-4", "devices"},
	{"last-event", optional, "tells which events its answers take into account",
		"R-list-2", "devices commands last-event"},
	{"devices.get-unknown", required, "answers not_found for an unknown device",
		"R-get-2", "get-unknown"},
	{"devices.forget", required, "forgets only devices that it cannot reach",
		"R-forget-2", "forget"},
	{"pairing.open", required, "opens the pairing window for 120 s",
		"R-pairing-1", "pairing"},
	{"pairing-setup-code", required, "rejects an unreadable setup code",
		"R-pairing-2", "pairing"},
	{"pairing.close", required, "closes the pairing window, also if it is closed",
		"R-pairing-4", "pairing"},
	{"removal.open", required, "opens the removal window for 120 s",
		"R-removal-1", "removal"},
	{"removal.close", required, "closes the removal window, also if it is closed",
		"R-removal-2", "removal"},
	{"channels.command", required, "answers a command with the pending channel",
		"R-command-1", "commands"},
	{"command-events", required, "reports a command as channel.desired, then channel.observed",
		"R-command-7 R-type-1", "commands"},
	{"command-once", required, "runs a repeated command ID once",
		"R-command-4", "once"},
	{"command-simultaneous", required, "runs one of two simultaneous repeats",
		"R-command-5", "simultaneous"},
	{"command-after-unavailable", optional, "runs a repeat of a command that it could not run",
		"R-command-6", "commands"},
	{"command-rejected", required, "rejects wrong commands",
		"R-command-2", "bad-commands"},
	{"credentials.list", optional, "lists the slots of a lock that have a code",
		"R-credential-2 R-credential-1", "credentials"},
	{"credentials.set", optional, "sets a code of a lock and removes it",
		"R-credential-3 R-credential-6", "credentials"},
}

// steps are the steps of the script, in their order: the name by which lines ask for a step, what
// goes on meanwhile, and what does it. The first step, hello, is a part of awaitHub.
var steps = []struct {
	name, text string
	do         func(*script)
}{
	{"devices", "asking for devices", (*script).checkDevices},
	{"get-unknown", "asking for a device that does not exist", (*script).checkGetUnknown},
	{"unknown-method", "calling an unknown method", (*script).checkUnknownMethod},
	{"forget", "asking to forget devices that must stay", (*script).checkForget},
	{"side-by-side", "sending many requests at once", (*script).checkSideBySide},
	{"members", "sending members of a later version", (*script).checkMembers},
	{"pairing", "opening and closing the pairing window", (*script).checkPairing},
	{"removal", "opening and closing the removal window", (*script).checkRemoval},
	{"commands", "sending a command", (*script).checkCommand},
	{"once", "repeating a command", (*script).checkOnce},
	{"simultaneous", "sending a command twice at once", (*script).checkSimultaneous},
	{"bad-commands", "sending wrong commands", (*script).checkBadCommands},
	{"credentials", "setting and removing a code of a lock", (*script).checkCredentials},
	{"last-event", "asking for devices after events", (*script).checkLastEvent},
	{"withhold", "withholding acks", (*script).checkWithhold},
	{"unknown-log", "sending an ack of an unknown log", (*script).checkUnknownLog},
	{"lower", "sending a lower through", (*script).checkLower},
	{"gap", "repeating through as after a gap", (*script).checkGap},
	{"cut", "cutting the connection", (*script).checkCut},
	{"full", "filling the hub's queue", (*script).checkFull},
	{"takeover", "closing the connection as in a takeover", (*script).checkTakeover},
	{"reject", "rejecting a connection", (*script).checkReject},
	{"stranger", "showing the certificate of another authority", (*script).checkStranger},
}

// Lines returns every line, in the order of the list.
func Lines() []Line {
	lines := make([]Line, len(table))
	for i, row := range table {
		lines[i] = Line{
			ID: row.id, Title: row.title, Rules: strings.Fields(row.rules),
			Optional: row.kind == optional, Recommended: row.kind == recommended,
			steps: strings.Fields(row.steps),
		}
	}
	return lines
}

// isLine reports whether the list has a line with this ID.
func isLine(id string) bool {
	for _, row := range table {
		if row.id == id {
			return true
		}
	}
	return false
}

// linesNamed returns the lines with these IDs, in the order of the list, or all for none.
func linesNamed(ids []string) ([]Line, error) {
	all := Lines()
	if len(ids) == 0 {
		return all, nil
	}
	for _, id := range ids {
		if !isLine(id) {
			names := make([]string, len(all))
			for i, l := range all {
				names[i] = l.ID
			}
			return nil, fmt.Errorf("%q is not one of %s", id, strings.Join(names, ", "))
		}
	}
	return slices.DeleteFunc(all, func(l Line) bool { return !slices.Contains(ids, l.ID) }), nil
}
