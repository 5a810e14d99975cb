package check

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"hubcloud/domain"
	"hubcloud/hubbridge/codec"
	"hubcloud/hubbridge/protocol"
)

type commandParams struct {
	CommandID string          `json:"command_id"`
	DeviceID  int64           `json:"device_id"`
	Key       string          `json:"key"`
	Endpoint  int64           `json:"endpoint"`
	Value     json.RawMessage `json:"value"`
}

// newCommand returns the params of a command to the target with a new id and the other of its two
// values.
func (s *script) newCommand() commandParams {
	t := s.target
	t.next = 1 - t.next
	s.lastCommand++
	return commandParams{
		CommandID: fmt.Sprintf("hub-check-%d-%d", s.started.UnixMilli(), s.lastCommand),
		DeviceID:  t.device, Key: t.key, Endpoint: t.endpoint, Value: t.values[1-t.next],
	}
}

// hasTarget reports whether there is a channel for commands, and sets hints if there is none.
func (s *script) hasTarget(ids ...string) bool {
	if s.target != nil {
		return true
	}
	for _, id := range ids {
		s.hint(id, "%s", s.noTarget())
	}
	return false
}

// checkCommand sends a command and follows its outcome.
func (s *script) checkCommand() {
	if !s.hasTarget("channels.command", "command-events") {
		for _, id := range []string{
			"numbering", "events-message", "message-size", "event-size", "event-form", "reserved-types",
		} {
			s.hint(id, "the hub has sent no event; %s", s.noTarget())
		}
		return
	}
	mark := s.next()
	command, waited := s.newCommand(), s.waited
	if s.unready != nil {
		command = *s.unready
	}
	a := s.call(protocol.MethodChannelsCommand, command)
	s.judgeUnready(a, s.unready != nil || s.waited > waited)
	if !s.wantResult("channels.command", a, func(result []byte) error {
		return checkAccepted(command, result)
	}) {
		if a.result == nil {
			s.hint("command-events", "the command was not accepted")
			return
		}
	}
	s.pass("channels.command")
	s.checkOutcome(mark, command)
}

// judgeUnready decides whether a hub remembers the answer hub_unavailable: a is a command, and
// asked is whether the hub has answered a request with its ID so before.
func (s *script) judgeUnready(a *call, asked bool) {
	const line = "command-after-unavailable"
	switch {
	case !asked:
		s.hint(line, "the hub has answered no command with %s", protocol.ErrorHubUnavailable)
	case a.err.Type != protocol.ErrorHubUnavailable:
		s.pass(line)
	default:
		other := s.begin(protocol.MethodChannelsCommand, s.newCommand(), false)
		s.wait(s.ctx, other)
		if other.result == nil {
			s.hint(line, "%s", s.notReady())
			return
		}
		s.fail(
			line, a.payload, "the repeat of a command is still answered with %s, but another one runs",
			protocol.ErrorHubUnavailable,
		)
	}
}

// checkAccepted returns what is wrong with the answer to a command that was accepted.
func checkAccepted(command commandParams, result []byte) error {
	channel, err := codec.ParseChannel(result)
	if err != nil {
		return err
	}
	var raw struct {
		Channel map[string]json.RawMessage `json:"channel"`
	}
	if err := json.Unmarshal(result, &raw); err != nil {
		return err
	}
	switch {
	case channel.Key != command.Key || channel.Endpoint != command.Endpoint:
		return fmt.Errorf(
			"it is channel %s/%d, want %s/%d", channel.Key, channel.Endpoint, command.Key,
			command.Endpoint,
		)
	case channel.Status != domain.ChannelPending:
		return fmt.Errorf("status is %q, want %q", channel.Status, domain.ChannelPending)
	case !domain.SameValue(channel.Desired, command.Value):
		return fmt.Errorf(
			"desired is %s, want the value of the command, %s", channel.Desired, command.Value,
		)
	case channel.DesiredAt == nil:
		return errors.New("desired_at is null, want the time of the command")
	}
	return hasMembers(raw.Channel, append([]string{"unit"}, valueMembers...))
}

// next returns the number of the next event.
func (s *script) next() uint64 { return s.highest + 1 }

// find returns the numbers of the events of the target's channel from the number from on, with a
// type and a value; a report may differ by half the channel's resolution. The caller holds the mutex.
func (s *script) find(from uint64, kind string, value json.RawMessage) (found []uint64) {
	for seq := from; seq <= s.highest; seq++ {
		e, ok := s.events[seq]
		if !ok || e.kind != kind || e.device != s.target.device || e.data == nil ||
			e.data.Key != s.target.key || e.data.Endpoint != s.target.endpoint {
			continue
		}
		if domain.SameValue(e.data.Value, value) || kind == eventObserved && s.target.isNearest(value, e.data.Value) {
			found = append(found, seq)
		}
	}
	return found
}

// checkOutcome waits for the events of an accepted command.
func (s *script) checkOutcome(from uint64, command commandParams) {
	var desired, observed []uint64
	s.await(s.ctx, outcomeLimit, func() bool {
		desired = s.find(from, eventDesired, command.Value)
		observed = s.find(from, eventObserved, command.Value)
		return len(desired) > 0 && len(observed) > 0
	})
	switch {
	case len(desired) == 0:
		s.fail(
			"command-events", nil, "no channel.desired with %s for %s within %v of the command",
			command.Value, s.target, outcomeLimit,
		)
	case len(observed) == 0:
		s.hint(
			"command-events",
			"channel.desired came, but no channel.observed with %s for %s within %v", command.Value,
			s.target, outcomeLimit,
		)
	case observed[0] < desired[0]:
		s.fail(
			"command-events", nil,
			"channel.observed (event %d) came before channel.desired (event %d)", observed[0],
			desired[0],
		)
	default:
		s.pass("command-events")
	}
}

// checkOnce repeats a command after its outcome.
func (s *script) checkOnce() {
	if !s.hasTarget("command-once") {
		return
	}
	from, command := s.next(), s.newCommand()
	first := s.call(protocol.MethodChannelsCommand, command)
	if first.result == nil {
		s.hint("command-once", "the first %s", first.text())
		return
	}
	s.await(
		s.ctx, outcomeLimit,
		func() bool { return len(s.find(from, eventObserved, command.Value)) > 0 },
	)
	again := s.call(protocol.MethodChannelsCommand, command)
	s.judgeRepeats("command-once", from, command, first, again)
}

// checkSimultaneous sends a command twice at the same moment.
func (s *script) checkSimultaneous() {
	if !s.hasTarget("command-simultaneous") {
		return
	}
	from, command := s.next(), s.newCommand()
	first := s.begin(protocol.MethodChannelsCommand, command, false)
	second := s.begin(protocol.MethodChannelsCommand, command, false)
	s.wait(s.ctx, first, second)
	if first.result == nil && second.result == nil {
		s.hint("command-simultaneous", "%s", first.text())
		return
	}
	s.judgeRepeats("command-simultaneous", from, command, first, second)
}

// runTwiceLimit is how long a second channel.desired may take to arrive.
const runTwiceLimit = time.Second

// judgeRepeats decides a line by two requests with one command id: both must have the same answer,
// and the command must have run once.
func (s *script) judgeRepeats(id string, from uint64, command commandParams, first, second *call) {
	s.await(
		s.ctx, outcomeLimit,
		func() bool { return len(s.find(from, eventDesired, command.Value)) > 0 },
	)
	s.await(
		s.ctx, runTwiceLimit,
		func() bool { return len(s.find(from, eventDesired, command.Value)) > 1 },
	)
	runs := s.find(from, eventDesired, command.Value)
	switch {
	case len(runs) > 1:
		s.fail(
			id, second.payload,
			"command %s was sent twice and ran twice: events %d and %d are channel.desired",
			command.CommandID, runs[0], runs[1],
		)
	case second.result == nil || first.result == nil:
		s.fail(
			id, second.payload,
			"of two requests with one command_id one was answered with a result; "+"the other: %s",
			map[bool]*call{true: second, false: first}[second.result == nil].text(),
		)
	case !sameJSON(first.result, second.result):
		s.fail(
			id, second.payload, "the repeated command has another answer than the first, %s",
			first.result,
		)
	default:
		s.pass(id)
	}
}

func sameJSON(a, b []byte) bool {
	var left, right any
	return json.Unmarshal(a, &left) == nil && json.Unmarshal(b, &right) == nil && reflect.DeepEqual(left, right)
}

// checkBadCommands sends commands that a hub must reject.
func (s *script) checkBadCommands() {
	if !s.hasTarget("command-rejected") {
		return
	}
	type wrong struct {
		change func(*commandParams)
		want   string
	}
	cases := []wrong{
		{func(p *commandParams) { p.DeviceID = s.unusedDevice() }, protocol.ErrorNotFound},
		{func(p *commandParams) { p.Endpoint = 77 }, protocol.ErrorNotFound},
		{
			func(p *commandParams) { p.Value = json.RawMessage(`{"wrong":[]}`) },
			protocol.ErrorInvalidRequest,
		},
	}
	if s.target.readOnly != "" {
		cases = append(cases, wrong{
			func(p *commandParams) {
				p.Key, p.Endpoint = s.target.readOnly, s.target.readOnlyEndpoint
			},
			protocol.ErrorInvalidRequest,
		})
	}
	for _, c := range cases {
		command := s.newCommand()
		c.change(&command)
		if !s.wantError("command-rejected", s.call(protocol.MethodChannelsCommand, command), c.want) {
			return
		}
	}
	s.pass("command-rejected")
}

// provoke waits for new events of the hub, which it causes with a command if there is a target. It
// returns false, with hints for the lines, if none arrive.
func (s *script) provoke(ids ...string) bool {
	from := s.next()
	for {
		a := &call{done: true}
		if s.target != nil {
			a = s.begin(protocol.MethodChannelsCommand, s.newCommand(), false)
		}
		unready := func() bool { return a.err.Type == protocol.ErrorHubUnavailable }
		s.await(s.ctx, outcomeLimit, func() bool { return s.highest >= from || unready() })
		s.wait(s.ctx, a)
		if s.next() > from {
			return true
		}
		if !s.askAgain(a) {
			break
		}
	}
	for _, id := range ids {
		s.hint(id, "the hub has sent no event; %s", strings.TrimSpace(s.whyNoEvents()))
	}
	return false
}

func (s *script) whyNoEvents() string {
	if s.target == nil || s.waited >= s.cfg.ReadyWait {
		return s.noTarget()
	}
	return fmt.Sprintf("a command to %s caused none", s.target)
}
