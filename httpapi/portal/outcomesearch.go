package portal

import (
	"bytes"
	"encoding/json"
	"fmt"

	"hubcloud/domain"
	"hubcloud/domain/attention"
)

// outcomeSearch finds the outcome of a command in the events of its hub's log that follow the
// command, in order. What the device had reported before the command's own channel.desired does not
// count: it says nothing about the command, whatever its value and its time.
type outcomeSearch struct {
	deviceID    int64
	deviceField []byte
	key         string
	endpoint    int64
	wanted      json.RawMessage
	// asked reports that the command's channel.desired has come.
	asked bool
	// outcome is outcomePending until the device has reported. reported is the value that it
	// reported. final reports that later events change nothing.
	outcome  commandOutcome
	reported json.RawMessage
	final    bool
}

func newOutcomeSearch(
	device int64, key string, endpoint int64, wanted json.RawMessage,
) outcomeSearch {
	return outcomeSearch{
		deviceID: device, deviceField: fmt.Appendf(nil, `"device_id":%d,`, device),
		key: key, endpoint: endpoint, wanted: wanted, outcome: outcomePending,
	}
}

// take takes the next event of the log.
func (s *outcomeSearch) take(encoded domain.EncodedEvent) {
	if s.final || !bytes.Contains(encoded.Envelope, s.deviceField) {
		return
	}
	event, ok := decode(encoded)
	var of channelEvent
	if !ok || !event.isOf(s.deviceID) || json.Unmarshal(event.Data, &of) != nil {
		return
	}
	own := of.Key == s.key && of.Endpoint == s.endpoint
	switch {
	case event.Type == "channel.desired" && own:
		s.desired(of.Value)
	case event.Type == "channel.status" && own && s.asked:
		s.abandoned(of.Status)
	case event.Type != "channel.observed" || !s.asked:
	case own:
		s.observed(of.Value)
	case of.Key == "alarm" && s.outcome == outcomeNotDone && isJam(of.Value):
		s.outcome = outcomeJammed
	}
}

// isJam reports whether a report of an alarm channel is about a lock that is jammed.
func isJam(value json.RawMessage) bool {
	var alarm attention.AlarmReport
	if json.Unmarshal(value, &alarm) != nil || !alarm.Active {
		return false
	}
	meaning, _ := alarm.Meaning()
	return meaning == attention.Meaning(attention.Jammed)
}

// desired takes what a command asked for: this command, one before or one after it.
func (s *outcomeSearch) desired(value json.RawMessage) {
	switch {
	case s.asked && s.outcome == outcomePending:
		s.outcome, s.final = outcomeReplaced, true
	case s.asked:
		s.final = true
	default:
		s.asked = domain.SameValue(value, s.wanted)
	}
}

// abandoned takes a status that the hub has told without a report of the device.
func (s *outcomeSearch) abandoned(status domain.ChannelStatus) {
	if s.outcome == outcomePending && status == domain.ChannelFailed {
		s.outcome, s.final = outcomeFailed, true
	}
}

// observed takes a report of the channel. The first report decides; but a level, a position or a
// temperature may pass others on its way.
func (s *outcomeSearch) observed(value json.RawMessage) {
	switch {
	case s.outcome != outcomePending && isBool(value):
		s.final = true
	case domain.SameValue(value, s.wanted):
		s.outcome, s.reported, s.final = outcomeDone, value, true
	default:
		s.outcome, s.reported = outcomeNotDone, value
	}
}
