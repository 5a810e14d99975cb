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
	steps []step
}

// Sentence returns the text of the line's main rule.
func (l Line) Sentence() string { return protocol.Sentence(l.Rules[0]) }

// Lines returns every line, in the order of the list.
func Lines() []Line {
	return slices.Concat(connectionLines(), logLines(), requestLines())
}

// linesNamed returns the lines with these IDs, in the order of the list, or all for none.
func linesNamed(ids []string) ([]Line, error) {
	all := Lines()
	if len(ids) == 0 {
		return all, nil
	}
	for _, id := range ids {
		if !slices.ContainsFunc(all, func(l Line) bool { return l.ID == id }) {
			return nil, fmt.Errorf("%q is not one of %s", id, lineIDs(all))
		}
	}
	return slices.DeleteFunc(all, func(l Line) bool { return !slices.Contains(ids, l.ID) }), nil
}

func lineIDs(lines []Line) string {
	ids := make([]string, len(lines))
	for i, l := range lines {
		ids[i] = l.ID
	}
	return strings.Join(ids, ", ")
}

// IDs of the lines.
const (
	lineEnrols      = "enrols"
	lineRenews      = "renews-certificate"
	lineCertificate = "current-certificate"
	lineConnects    = "connects"
	lineClientID    = "client-id"
	lineClean       = "clean-session"
	lineKeepAlive   = "keep-alive"
	lineQoS         = "no-qos-2"
	lineRetain      = "no-retain"
	lineTopics      = "own-topics"
	lineOne         = "one-connection"
	lineWait        = "waits-to-reconnect"
	lineCut         = "survives-cut"
	lineTakeover    = "survives-takeover"
	lineRejected    = "survives-rejection"
	lineVerifies    = "verifies-broker"
	lineRecovers    = "recovers-ca"

	lineSubscribes   = "subscribes-first"
	lineHello        = "hello-fields"
	lineHelloInfo    = "hello-info"
	lineHelloRepeats = "hello-repeats"
	lineHelloFirst   = "no-events-before-ack"
	lineLog          = "log-identity"
	lineNumbers      = "numbering"
	lineKeeps        = "keeps-events"
	lineMessage      = "events-message"
	lineMessageSize  = "message-size"
	lineEventSize    = "event-size"
	lineEvent        = "event-form"
	lineReserved     = "reserved-types"
	lineEventData    = "event-data"
	lineValues       = "channel-values"
	lineSame         = "same-content"
	lineFrom         = "sends-from-through"
	lineResends      = "resends"
	lineGap          = "resends-after-gap"
	lineContinues    = "continues-after-cut"
	lineWindow       = "send-window"
	lineDrains       = "survives-full-queue"
	lineLower        = "lower-through"
	lineRestored     = "restored-cloud"
	lineUnknownLog   = "unknown-log"
	lineHigher       = "higher-through"
	lineMembers      = "unknown-members"

	lineTopic        = "response-topic"
	lineResponse     = "response-form"
	lineSideBySide   = "side-by-side"
	lineMethod       = "unknown-method"
	lineList         = "devices.list"
	lineGet          = "devices.get"
	lineLastEvent    = "last-event"
	lineGetUnknown   = "devices.get-unknown"
	lineForget       = "devices.forget"
	lineCommand      = "channels.command"
	lineBadCommand   = "command-rejected"
	lineOnce         = "command-once"
	lineSimultaneous = "command-simultaneous"
	lineOutcome      = "command-events"
	linePairing      = "pairing.open"
	lineSetupCode    = "pairing-setup-code"
	linePairingClose = "pairing.close"
	lineRemoval      = "removal.open"
	lineRemovalClose = "removal.close"
)

func connectionLines() []Line {
	return []Line{
		{
			ID: lineEnrols, Title: "enrols with its serial, secret and a certificate request",
			Rules: []string{"R-enrol-1", "R-enrol-2"},
		},
		{
			ID: lineConnects, Title: "connects with MQTT 3.1.1 over TLS and its certificate",
			Rules: []string{"R-connect-1"},
		},
		{
			ID: lineClientID, Title: "uses its hub ID as client ID",
			Rules: []string{"R-connect-2"},
		},
		{
			ID: lineClean, Title: "connects with a clean session",
			Rules: []string{"R-connect-3"},
		},
		{
			ID: lineKeepAlive, Title: "has a keep-alive from 1 to 60 s, and keeps to it",
			Rules: []string{"R-connect-4"},
		},
		{
			ID: lineQoS, Title: "publishes with QoS 0 or 1",
			Rules: []string{"R-connect-5"},
		},
		{
			ID: lineRetain, Title: "retains no message and sets no will",
			Rules: []string{"R-connect-6"},
		},
		{
			ID: lineTopics, Title: "uses its own topics only",
			Rules: []string{"R-connect-7"},
		},
		{
			ID: lineOne, Title: "has one connection at a time",
			Rules: []string{"R-connect-9"},
		},
		{
			ID: lineSubscribes, Title: "subscribes to ack and request before its hello",
			Rules: []string{"R-hello-1"},
		},
		{
			ID: lineRenews, Title: "renews a certificate with less than 30 days left",
			Rules: []string{"R-enrol-4"}, steps: []step{stepCut},
		},
		{
			ID: lineCertificate, Title: "connects with the certificate issued last",
			Rules: []string{"R-enrol-3"}, steps: []step{stepCut},
		},
		{
			ID: lineCut, Title: "connects again after a cut connection",
			Rules: []string{"R-connect-8"}, steps: []step{stepCut},
		},
		{
			ID: lineTakeover, Title: "connects again after a takeover",
			Rules: []string{"R-connect-8", "R-connect-9"}, steps: []step{stepTakeover},
		},
		{
			ID: lineRejected, Title: "connects again after a rejected connection",
			Rules: []string{"R-connect-8", "R-enrol-5"}, steps: []step{stepReject},
		},
		{
			ID: lineVerifies, Title: "connects to no broker whose certificate ca does not verify",
			Rules: []string{"R-connect-1"}, steps: []step{stepStranger},
		},
		{
			ID: lineRecovers, Title: "enrols again when ca does not verify the broker",
			Rules: []string{"R-enrol-7"}, Recommended: true, steps: []step{stepStranger},
		},
		{
			ID: lineWait, Title: "waits before it connects again",
			Rules: []string{"R-connect-8"}, Recommended: true,
			steps: []step{stepCut, stepTakeover, stepReject},
		},
	}
}

func logLines() []Line {
	return []Line{
		{
			ID: lineHello, Title: "sends a hello with the required members",
			Rules: []string{"R-hello-2", "R-hello-3", "R-json-3"},
		},
		{
			ID: lineHelloInfo, Title: "reports firmware, network and clock_trusted",
			Rules: []string{"R-hello-7"}, Recommended: true,
		},
		{
			ID: lineHelloRepeats, Title: "repeats its hello every 5 s until an ack",
			Rules: []string{"R-hello-4"}, steps: []step{stepHello},
		},
		{
			ID: lineHelloFirst, Title: "sends no events before the ack of its hello",
			Rules: []string{"R-hello-5"}, steps: []step{stepCut},
		},
		{
			ID: lineLog, Title: "keeps the identity of its log",
			Rules: []string{"R-log-2"}, steps: []step{stepCut},
		},
		{
			ID: lineNumbers, Title: "numbers its events without gaps",
			Rules: []string{"R-log-1"}, steps: []step{stepCommands},
		},
		{
			ID: lineMessage, Title: "sends 1 to 500 events with rising numbers in a message",
			Rules: []string{"R-events-1", "R-json-1"}, steps: []step{stepCommands},
		},
		{
			ID: lineMessageSize, Title: "sends messages of at most 256 KiB",
			Rules: []string{"R-events-2"}, steps: []step{stepCommands},
		},
		{
			ID: lineEventSize, Title: "sends events of at most 16 KiB",
			Rules: []string{"R-events-3"}, steps: []step{stepCommands},
		},
		{
			ID: lineEvent, Title: "sends well-formed events",
			Rules: []string{"R-events-8", "R-time-1", "R-json-4"}, steps: []step{stepCommands},
		},
		{
			ID: lineReserved, Title: "sends no event types of the cloud",
			Rules: []string{"R-events-9"}, steps: []step{stepCommands},
		},
		{
			ID: lineEventData, Title: "sends the data of each type of event",
			Rules:    []string{"R-type-4", "R-join-1", "R-join-2", "R-join-3"},
			Optional: true, steps: []step{stepCommands},
		},
		{
			ID: lineValues, Title: "reports values in the form of their channel's key",
			Rules: []string{"R-channel-5"}, Optional: true,
			steps: []step{stepDevices, stepCommands},
		},
		{
			ID: lineResends, Title: "sends again after 5 s without an ack",
			Rules: []string{"R-events-5"}, steps: []step{stepWithhold},
		},
		{
			ID: lineFrom, Title: "sends again from through + 1",
			Rules: []string{"R-ack-1"}, steps: []step{stepWithhold},
		},
		{
			ID: lineSame, Title: "sends an event again with the same content",
			Rules: []string{"R-events-7"}, steps: []step{stepWithhold},
		},
		{
			ID: lineUnknownLog, Title: "ignores an ack of an unknown log",
			Rules: []string{"R-ack-3"}, steps: []step{stepUnknownLog},
		},
		{
			ID: lineLower, Title: "ignores a lower through within a connection",
			Rules: []string{"R-ack-2"}, steps: []step{stepLower},
		},
		{
			ID: lineGap, Title: "sends again at once when an ack shows a gap",
			Rules: []string{"R-events-6"}, steps: []step{stepGap},
		},
		{
			ID: lineKeeps, Title: "keeps events until an ack covers them",
			Rules: []string{"R-log-3"}, steps: []step{stepCut},
		},
		{
			ID: lineContinues, Title: "goes on from through + 1 after a cut",
			Rules: []string{"R-ack-1"}, steps: []step{stepCut},
		},
		{
			ID: lineWindow, Title: "has at most 2,000 events unacknowledged",
			Rules: []string{"R-events-4"}, Optional: true, steps: []step{stepFull},
		},
		{
			ID:    lineDrains,
			Title: "empties its queue once acks arrive",
			Rules: []string{
				"R-events-4",
				"R-log-3",
				"R-hello-6",
			},
			Optional: true,
			steps:    []step{stepFull},
		},
		{
			ID: lineRestored, Title: "accepts a lower through after a new hello",
			Rules: []string{"R-ack-4", "R-ack-2"}, steps: []step{stepTakeover},
		},
		{
			ID: lineHigher, Title: "goes on after a higher through",
			Rules: []string{"R-ack-5"}, steps: []step{stepReject},
		},
		{
			ID: lineMembers, Title: "ignores members that it does not know",
			Rules: []string{"R-json-2"}, steps: []step{stepMembers, stepReject},
		},
	}
}

func requestLines() []Line {
	return []Line{
		{
			ID: lineTopic, Title: "answers on the topic of the request's token",
			Rules: []string{"R-request-1"}, steps: []step{stepDevices},
		},
		{
			ID: lineResponse, Title: "answers with id and result or error",
			Rules: []string{"R-request-2", "R-error-1", "R-request-5"}, steps: []step{stepDevices},
		},
		{
			ID: lineMethod, Title: "answers an unknown method with an error",
			Rules: []string{"R-request-6"}, steps: []step{stepUnknownMethod},
		},
		{
			ID: lineSideBySide, Title: "answers many requests side by side",
			Rules: []string{"R-request-3", "R-request-4"}, steps: []step{stepSideBySide},
		},
		{
			ID:    lineList,
			Title: "lists its devices, without values",
			Rules: []string{
				"R-list-1",
				"R-device-1",
				"R-channel-1",
				"R-channel-2",
			},
			steps: []step{stepDevices},
		},
		{
			ID: lineGet, Title: "returns a device with values",
			Rules: []string{"R-get-1", "R-channel-3", "R-channel-4"}, steps: []step{stepDevices},
		},
		{
			ID: lineLastEvent, Title: "tells which events its answers take into account",
			Rules: []string{"R-list-2"}, Optional: true,
			steps: []step{stepDevices, stepCommands, stepLastEvent},
		},
		{
			ID: lineGetUnknown, Title: "answers not_found for an unknown device",
			Rules: []string{"R-get-2"}, steps: []step{stepGetUnknown},
		},
		{
			ID: lineForget, Title: "forgets only devices that it cannot reach",
			Rules: []string{"R-forget-2"}, steps: []step{stepForget},
		},
		{
			ID: linePairing, Title: "opens the pairing window for 120 s",
			Rules: []string{"R-pairing-1"}, steps: []step{stepPairing},
		},
		{
			ID: lineSetupCode, Title: "rejects an unreadable setup code",
			Rules: []string{"R-pairing-2"}, steps: []step{stepPairing},
		},
		{
			ID: linePairingClose, Title: "closes the pairing window, also if it is closed",
			Rules: []string{"R-pairing-4"}, steps: []step{stepPairing},
		},
		{
			ID: lineRemoval, Title: "opens the removal window for 120 s",
			Rules: []string{"R-removal-1"}, steps: []step{stepRemoval},
		},
		{
			ID: lineRemovalClose, Title: "closes the removal window, also if it is closed",
			Rules: []string{"R-removal-2"}, steps: []step{stepRemoval},
		},
		{
			ID: lineCommand, Title: "answers a command with the pending channel",
			Rules: []string{"R-command-1"}, steps: []step{stepCommands},
		},
		{
			ID: lineOutcome, Title: "reports a command as channel.desired, then channel.observed",
			Rules: []string{"R-command-7", "R-type-1"}, steps: []step{stepCommands},
		},
		{
			ID: lineOnce, Title: "runs a repeated command ID once",
			Rules: []string{"R-command-4"}, steps: []step{stepOnce},
		},
		{
			ID: lineSimultaneous, Title: "runs one of two simultaneous repeats",
			Rules: []string{"R-command-5"}, steps: []step{stepSimultaneous},
		},
		{
			ID: lineBadCommand, Title: "rejects wrong commands",
			Rules: []string{"R-command-2"}, steps: []step{stepBadCommands},
		},
	}
}
