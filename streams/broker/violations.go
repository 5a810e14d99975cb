package broker

import (
	"context"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"hubcloud/streams"
)

const (
	// violationQueue is how many violations may wait in each of two queues. Those beyond are
	// dropped.
	violationQueue = 256
	// violationEvery is the least time between two reports of the same kind about a connection.
	violationEvery = time.Second
	// maxLookups is how often a connection is looked up again that is not found, after lookupPause.
	maxLookups  = 5
	lookupPause = 20 * time.Millisecond
	// maxViolators bounds the connections whose last report is remembered.
	maxViolators = 4096
)

// Violation is something that a hub does and the broker does not allow. The NATS server reports it
// only in its log.
type Violation struct {
	// ClientID is the MQTT client ID of the connection, which is the hub's ID.
	ClientID string
	Kind     ViolationKind
	// Topic is the MQTT topic; empty for QoS2.
	Topic string
}

// ViolationKind is a kind of Violation.
type ViolationKind string

// The kinds of violations.
const (
	// ViolationPublish: a message to a topic that is not allowed was dropped.
	ViolationPublish ViolationKind = "publish"
	// ViolationSubscribe: a subscription that is not allowed was rejected.
	ViolationSubscribe ViolationKind = "subscribe"
	// ViolationQoS2: the connection was closed because of a message with QoS 2.
	ViolationQoS2 ViolationKind = "qos2"
)

// violationLine is a violation as the server's log has it: about a connection's number.
type violationLine struct {
	cid   uint64
	kind  ViolationKind
	topic string
}

// violationPattern matches the server's log lines about violations of MQTT clients.
var violationPattern = regexp.MustCompile(
	` - mid:(\d+)\b.*? - (?:(Publish|Subscription) Violation - Subject ("(?:[^"\\]|\\.)*")|QoS=2 )`,
)

// parseViolation reads a line of the server's log; false for a line about something else.
func parseViolation(text string) (line violationLine, ok bool) {
	// Most lines are none: this is faster than the pattern.
	if !strings.Contains(text, "Violation - Subject") && !strings.Contains(text, "QoS=2 ") {
		return line, false
	}
	match := violationPattern.FindStringSubmatch(text)
	if match == nil {
		return line, false
	}
	cid, err := strconv.ParseUint(match[1], 10, 64)
	if err != nil {
		return line, false
	}
	switch line = (violationLine{cid: cid, kind: ViolationQoS2}); match[2] {
	case "Publish":
		line.kind = ViolationPublish
	case "Subscription":
		line.kind = ViolationSubscribe
	default:
		return line, true
	}
	subject, err := strconv.Unquote(match[3])
	// A subscription at QoS 1 has an internal one beside it, which no client names.
	if err != nil || strings.HasPrefix(subject, "$MQTT") {
		return line, false
	}
	line.topic = strings.ReplaceAll(subject, ".", "/")
	return line, true
}

// note queues the violation of a log line, if the line reports one. It does not block: the server
// logs while it serves the connection.
func (s *Server) note(text string) {
	if line, ok := parseViolation(text); ok {
		select {
		case s.violationLines <- line:
		default:
		}
	}
}

// Violations returns the channel of violations. What is not received in time is dropped.
func (s *Server) Violations() <-chan Violation { return s.violations }

// resolveViolations finds the hubs of violations until ctx ends.
func (s *Server) resolveViolations(ctx context.Context) {
	type key struct {
		cid  uint64
		kind ViolationKind
	}
	reported := map[key]time.Time{}
	for {
		var line violationLine
		select {
		case <-ctx.Done():
			return
		case line = <-s.violationLines:
		}
		now, k := time.Now(), key{line.cid, line.kind}
		if now.Sub(reported[k]) < violationEvery {
			continue
		}
		if len(reported) >= maxViolators {
			clear(reported)
		}
		reported[k] = now
		id := s.clientID(line.cid)
		// A connection that is being closed is in neither of the server's lists for a moment.
		for try := 0; id == "" && try < maxLookups; try++ {
			if !streams.Sleep(ctx, lookupPause) {
				return
			}
			id = s.clientID(line.cid)
		}
		if id == "" {
			continue
		}
		select {
		case s.violations <- Violation{ClientID: id, Kind: line.kind, Topic: line.topic}:
		default:
		}
	}
}

// clientID returns the MQTT client ID of a connection, also of one that has just been closed; "" if
// it is not known.
func (s *Server) clientID(cid uint64) string {
	run := s.current.Load()
	if run == nil {
		return ""
	}
	list, err := run.hubs.Connz(
		&server.ConnzOptions{CID: cid, State: server.ConnAll, Username: true},
	)
	if err != nil || len(list.Conns) == 0 {
		return ""
	}
	return list.Conns[0].MQTTClient
}
