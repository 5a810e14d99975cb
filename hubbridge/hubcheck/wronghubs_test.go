package hubcheck_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/eclipse/paho.mqtt.golang/packets"
	"go.uber.org/goleak"

	"hubcloud/hubbridge/hubcheck"
	"hubcloud/hubbridge/virtualhub"
)

func TestMain(m *testing.M) {
	// The default HTTP client keeps connections of enrolments for a while.
	goleak.VerifyTestMain(
		m, goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"),
		goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"),
	)
}

// TestRightHub: a virtual hub passes every line.
func TestRightHub(t *testing.T) {
	t.Parallel()
	report := checkHub(t, hubcheck.Config{
		Commands: hubcheck.DefaultCommands, Timeout: 3 * time.Minute,
	}, faults{})
	for _, r := range report {
		if r.Status != hubcheck.Passed {
			t.Errorf("line %s: %s: %s %s, want passed", r.ID, r.Status, r.Detail, r.Message)
		}
	}
	if !report.OK() {
		t.Error("OK() = false, want true")
	}
}

// TestWrongHubs: each wrong hub fails at its line and at no other of the lines that are observed.
func TestWrongHubs(t *testing.T) {
	t.Parallel()
	reports := make(map[string]hubcheck.Report)
	var mu sync.Mutex
	var running sync.WaitGroup
	// All hubs at once, in place of parallel subtests: they wait most of the time.
	for name, wrong := range wrongHubs() {
		running.Go(func() {
			config := hubcheck.Config{Only: append(observed(), wrong.line), Timeout: 2 * time.Minute}
			if wrong.line == "send-window" || wrong.line == "survives-full-queue" {
				config.Commands = hubcheck.DefaultCommands
			}
			if wrong.timeout > 0 {
				config.Timeout = wrong.timeout
			}
			report := checkHub(t, config, wrong.faults)
			mu.Lock()
			defer mu.Unlock()
			reports[name] = report
		})
	}
	running.Wait()
	lines := map[string]bool{}
	for name, wrong := range wrongHubs() {
		lines[wrong.line] = true
		t.Run(name, func(t *testing.T) {
			var failed []string
			for _, r := range reports[name] {
				if r.Status == hubcheck.Failed {
					failed = append(failed, r.ID)
					t.Logf("%s: %s; message %q", r.ID, r.Detail, r.Message)
				}
				if r.ID == wrong.line && r.Status == hubcheck.NotSeen {
					t.Logf("%s not seen: %s", r.ID, r.Detail)
				}
			}
			if !slices.Equal(failed, []string{wrong.line}) {
				t.Errorf("failed lines = %q, want %q", failed, wrong.line)
			}
			if reports[name].OK() {
				t.Error("OK() = true, want false")
			}
		})
	}
	for _, l := range hubcheck.Lines() {
		if !lines[l.ID] {
			t.Errorf("line %s: no wrong hub fails at it", l.ID)
		}
		if l.Sentence() == "" {
			t.Errorf("line %s: its rule %s has no sentence", l.ID, l.Rules[0])
		}
	}
}

// observed returns the lines that are observed on every packet.
func observed() []string {
	return []string{
		"enrols", "connects", "client-id", "clean-session", "keep-alive", "no-qos-2", "no-retain",
		"own-topics", "subscribes-first", "hello-fields", "hello-info", "no-events-before-ack",
		"message-size", "event-size", "reserved-types", "log-identity", "response-form",
		"response-topic",
	}
}

// checkHub checks a virtual hub with faults.
func checkHub(t *testing.T, config hubcheck.Config, f faults) hubcheck.Report {
	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Minute)
	defer cancel()
	check, err := hubcheck.New(config)
	if err != nil {
		t.Error(err)
		return nil
	}
	p := startProxy(t, check.EnrolURL(), f)
	cfg := virtualhub.Config{
		EnrollURL: check.EnrolURL(), Serial: check.Serial(), Secret: check.Secret(),
		Devices:    []virtualhub.DeviceSpec{{Kind: "outlet"}, {Kind: "climate_sensor"}},
		HTTPClient: &http.Client{Transport: p, Timeout: time.Minute}, Quiet: true,
		Logger: slog.New(slog.DiscardHandler),
	}
	if f.config != nil {
		f.config(&cfg)
	}
	hub, err := virtualhub.New(cfg)
	if err != nil {
		t.Error(err)
		return nil
	}
	var running sync.WaitGroup
	running.Go(func() {
		if err := hub.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	report, err := check.Run(ctx)
	if err != nil {
		t.Error(err)
	}
	cancel()
	running.Wait()
	return report
}

type wrongHub struct {
	line   string // the line at which it fails
	faults faults
	// timeout is that of the check, for hubs that never connect.
	timeout time.Duration
}

// short is enough for a hub to enrol on a busy machine.
const short = 30 * time.Second

func wrongHubs() map[string]wrongHub {
	all := map[string]wrongHub{}
	for _, hubs := range []map[string]wrongHub{
		wrongConnections(), wrongHellos(), wrongEvents(), wrongAcks(), wrongResponses(), wrongCommands(),
	} {
		for name, hub := range hubs {
			if _, ok := all[name]; ok {
				panic("two wrong hubs are called " + name)
			}
			all[name] = hub
		}
	}
	return all
}

func wrongConnections() map[string]wrongHub {
	onConnect := func(line string, change func(*packets.ConnectPacket)) wrongHub {
		return wrongHub{line: line, faults: faults{connect: change}}
	}
	return map[string]wrongHub{
		"wrong secret": {line: "enrols", timeout: short, faults: faults{
			config: func(c *virtualhub.Config) { c.Secret = "another" },
		}},
		"MQTT 3.1": {line: "connects", timeout: short, faults: faults{
			connect: func(p *packets.ConnectPacket) { p.ProtocolName, p.ProtocolVersion = "MQIsdp", 3 },
		}},
		"another client ID": onConnect("client-id", func(p *packets.ConnectPacket) {
			p.ClientIdentifier = "gateway"
		}),
		"persistent session": onConnect("clean-session", func(p *packets.ConnectPacket) {
			p.CleanSession = false
		}),
		"long keep-alive": onConnect("keep-alive", func(p *packets.ConnectPacket) { p.Keepalive = 300 }),
		"will": onConnect("no-retain", func(p *packets.ConnectPacket) {
			p.WillFlag, p.WillTopic, p.WillMessage = true, "hub/offline", []byte("{}")
		}),
		"retained hello": {line: "no-retain", faults: faults{
			up: func(_ *link, p packets.ControlPacket) bool {
				if publish, ok := p.(*packets.PublishPacket); ok {
					publish.Retain = true
				}
				return true
			},
		}},
		"QoS 2": {line: "no-qos-2", faults: faults{
			up: func(l *link, p packets.ControlPacket) bool {
				if publish, ok := p.(*packets.PublishPacket); ok {
					publish.Qos, publish.MessageID = 2, 7
				}
				return true
			},
			down: func(l *link, p packets.ControlPacket) bool {
				if received, ok := p.(*packets.PubrecPacket); ok {
					release := packets.NewControlPacket(packets.Pubrel).(*packets.PubrelPacket)
					release.MessageID = received.MessageID
					l.toCloud(release)
					return false
				}
				_, complete := p.(*packets.PubcompPacket)
				return !complete
			},
		}},
		"foreign topic": {line: "own-topics", faults: faults{
			message: func(l *link, m *message) bool {
				if m.suffix == "hello" {
					l.toCloud(l.publish("state", m.body))
				}
				return true
			},
		}},
		"foreign subscription": {line: "own-topics", faults: faults{
			up: func(_ *link, p packets.ControlPacket) bool {
				if subscribe, ok := p.(*packets.SubscribePacket); ok {
					subscribe.Topics = append(subscribe.Topics, "hub/#")
					subscribe.Qoss = append(subscribe.Qoss, 0)
				}
				return true
			},
			down: func(_ *link, p packets.ControlPacket) bool {
				if granted, ok := p.(*packets.SubackPacket); ok {
					granted.ReturnCodes = granted.ReturnCodes[:2]
				}
				return true
			},
		}},
		"two connections": {line: "one-connection", faults: faults{
			message: func(l *link, m *message) bool {
				if m.suffix == "hello" {
					dialer, broker := l.dialer()
					if second, err := dialer.Dial("tcp", broker); err == nil {
						_ = l.connected.Write(second) // the check closes the former connection
						l.t.Cleanup(func() { _ = second.Close() })
					}
				}
				return true
			},
		}, timeout: short},
		"no renewal": {line: "renews-certificate", faults: faults{
			config: func(c *virtualhub.Config) { c.RenewBefore = time.Hour },
		}},
		"former certificate":   {line: "current-certificate", faults: faults{formerCertificate: true}},
		"no return":            {line: "survives-cut", faults: faults{connections: 1}},
		"no return, takeover":  {line: "survives-takeover", faults: faults{connections: 2}},
		"no return, rejection": {line: "survives-refusal", faults: faults{connections: 3}},
		"no wait": {line: "waits-to-reconnect", faults: faults{
			config: func(c *virtualhub.Config) { c.BackoffMin = time.Millisecond },
		}},
	}
}

func wrongHellos() map[string]wrongHub {
	onHello := func(line string, change func(l *link, m *message) bool) wrongHub {
		return wrongHub{line: line, faults: faults{message: func(l *link, m *message) bool {
			return m.suffix != "hello" || change(l, m)
		}}}
	}
	count := func(l *link, name string) int {
		key := fmt.Sprint(name, l.number)
		n, _ := l.memory[key].(int)
		l.memory[key] = n + 1
		return n + 1
	}
	return map[string]wrongHub{
		"hello first": {line: "subscribes-first", faults: faults{
			up: func(l *link, p packets.ControlPacket) bool {
				subscribe, ok := p.(*packets.SubscribePacket)
				if ok {
					l.toCloud(l.publish("hello", map[string]any{
						"protocol": 1, "log": "first", "oldest": 1, "newest": 0, "clock_trusted": true,
						"firmware": map[string]any{"version": "1"},
						"network":  map[string]any{"type": "ethernet", "interface": "eth0", "metered": false},
					}))
					l.toCloud(subscribe)
				}
				return !ok
			},
			message: func(_ *link, m *message) bool {
				m.body["log"] = "first"
				return true
			},
		}},
		"oldest 0": onHello("hello-fields", func(_ *link, m *message) bool {
			if number(m.body, "oldest") == 1 {
				m.body["oldest"] = 0
			}
			return true
		}),
		"no newest": {line: "hello-fields", timeout: short / 2, faults: faults{
			message: func(_ *link, m *message) bool {
				delete(m.body, "newest")
				return true
			},
		}},
		"no firmware": onHello("hello-info", func(_ *link, m *message) bool {
			delete(m.body, "firmware")
			return true
		}),
		"one hello": onHello("hello-repeats", func(l *link, _ *message) bool {
			return count(l, "hello") == 1
		}),
		"events before the ack": {line: "no-events-before-ack", faults: faults{
			message: func(l *link, m *message) bool {
				if m.suffix == "events" {
					l.memory["events"] = m.body
				}
				if events, ok := l.memory["events"]; ok && m.suffix == "hello" {
					l.toCloud(l.publish("events", events))
				}
				return true
			},
		}},
		"another log": {line: "log-identity", faults: faults{
			message: func(l *link, m *message) bool {
				if log, ok := m.body["log"]; ok {
					l.memory["log"] = log
					m.body["log"] = fmt.Sprint("log", l.number)
				}
				return true
			},
			answer: func(l *link, m *message) bool {
				if m.suffix == "ack" {
					m.body["log"] = l.memory["log"]
				}
				return true
			},
		}},
		"forgetful": onHello("keeps-events", func(l *link, m *message) bool {
			if l.number > 1 {
				m.body["oldest"] = number(m.body, "newest") + 1
			}
			return true
		}),
		"no second hello": onHello("restored-cloud", func(l *link, _ *message) bool {
			return l.number == 1 || count(l, "hello") == 1
		}),
	}
}

func wrongEvents() map[string]wrongHub {
	onEvents := func(line string, change func(l *link, m *message) bool) wrongHub {
		return wrongHub{line: line, faults: faults{message: func(l *link, m *message) bool {
			return m.suffix != "events" || change(l, m)
		}}}
	}
	each := func(line string, change func(e map[string]any)) wrongHub {
		return onEvents(line, func(_ *link, m *message) bool {
			for _, e := range m.events() {
				change(e)
			}
			return true
		})
	}
	// seen returns the highest number sent before, and notes the message.
	seen := func(l *link, m *message, key string) (before int64) {
		before, _ = l.memory[key].(int64)
		for _, e := range m.events() {
			l.memory[key] = max(before, number(e, "seq"))
		}
		return before
	}
	return map[string]wrongHub{
		"gap": each("numbering", func(e map[string]any) { e["seq"] = number(e, "seq") + 1 }),
		"repeated number": each("events-message", func(e map[string]any) {
			e["seq"] = "one"
		}),
		"log of another hub": onEvents("events-message", func(_ *link, m *message) bool {
			m.body["log"] = "another"
			return true
		}),
		"huge message": onEvents("message-size", func(_ *link, m *message) bool {
			m.body["padding"] = strings.Repeat("x", 256<<10)
			return true
		}),
		"huge event": each("event-size", func(e map[string]any) {
			e["data"].(map[string]any)["padding"] = strings.Repeat("x", 17<<10)
		}),
		"time without offset": each("event-form", func(e map[string]any) { e["time"] = "2026-01-02 03:04:05" }),
		"no data":             each("event-form", func(e map[string]any) { delete(e, "data") }),
		"reserved type":       each("reserved-types", func(e map[string]any) { e["type"] = "hub.ready" }),
		"changed event": onEvents("same-content", func(l *link, m *message) bool {
			if n := seen(l, m, "sent"); number(m.events()[0], "seq") <= n {
				m.events()[0]["clock_trusted"] = false
			}
			return true
		}),
		"resends too much": onEvents("sends-from-through", func(l *link, m *message) bool {
			first := number(m.events()[0], "seq")
			n := seen(l, m, "sent")
			for _, e := range m.events() {
				l.memory[fmt.Sprint("event", number(e, "seq"))] = e
			}
			if former, ok := l.memory[fmt.Sprint("event", first-1)]; ok && first <= n {
				m.body["events"] = append([]any{former}, m.body["events"].([]any)...)
			}
			return true
		}),
		"no resend": onEvents("resends", func(l *link, m *message) bool {
			return number(m.events()[0], "seq") > seen(l, m, fmt.Sprint("sent", l.number))
		}),
		"no continuation": onEvents("continues-after-cut", func(l *link, m *message) bool {
			if l.number == 1 {
				seen(l, m, "sent")
				return true
			}
			return false
		}),
		"no window": {line: "send-window", faults: faults{
			config: func(c *virtualhub.Config) { c.Faults.IgnoreWindow = true },
		}},
		"stuck when full": onEvents("survives-full-queue", func(_ *link, m *message) bool {
			return number(m.events()[0], "seq") < 1500
		}),
	}
}

func wrongAcks() map[string]wrongHub {
	onAck := func(line string, change func(l *link, m *message) bool) wrongHub {
		return wrongHub{line: line, faults: faults{
			message: func(l *link, m *message) bool {
				switch m.suffix {
				case "hello":
					l.memory["log"], l.memory["newest"] = m.body["log"], number(m.body, "newest")
				case "events":
					for _, e := range m.events() {
						l.memory[fmt.Sprint("event", number(e, "seq"))] = e
						l.memory["newest"] = number(e, "seq")
					}
				}
				return true
			},
			answer: func(l *link, m *message) bool {
				return m.suffix != "ack" || change(l, m)
			},
		}}
	}
	return map[string]wrongHub{
		"any log": onAck("unknown-log", func(l *link, m *message) bool {
			m.body["log"] = l.memory["log"]
			return true
		}),
		"obeys a lower through": onAck("lower-through", func(l *link, m *message) bool {
			before, _ := l.memory["through"].(int64)
			through := number(m.body, "through")
			l.memory["through"] = through
			if event, ok := l.memory[fmt.Sprint("event", through+1)]; ok && through < before {
				l.toCloud(l.publish("events", map[string]any{
					"log": l.memory["log"], "events": []any{event},
				}))
			}
			return true
		}),
		"ignores a repeated through": onAck("resends-after-gap", func(l *link, m *message) bool {
			before, ok := l.memory["through"].(json.Number)
			through, _ := m.body["through"].(json.Number)
			l.memory["through"] = through
			return !ok || before != through
		}),
		"ignores a higher through": onAck("higher-through", func(l *link, m *message) bool {
			if newest, ok := l.memory["newest"].(int64); ok && number(m.body, "through") > newest {
				m.body["through"] = newest
			}
			return true
		}),
		"strict about acks": onAck("unknown-members", func(_ *link, m *message) bool {
			_, unknown := m.body["later"]
			return !unknown
		}),
		"strict about requests": {line: "unknown-members", faults: faults{
			answer: func(_ *link, m *message) bool {
				_, unknown := m.body["later"]
				return m.suffix != "request" || !unknown
			},
		}},
	}
}

// onResponse changes the responses to a method.
func onResponse(line, method string, change func(l *link, m *message)) wrongHub {
	return wrongHub{line: line, faults: faults{message: func(l *link, m *message) bool {
		if strings.HasPrefix(m.suffix, "response/") && (method == "" || m.method == method) {
			change(l, m)
		}
		return true
	}}}
}

// eachChannel calls change for the channels in a response.
func eachChannel(m *message, change func(channel map[string]any)) {
	var walk func(value any)
	walk = func(value any) {
		switch value := value.(type) {
		case map[string]any:
			if _, ok := value["key"]; ok {
				change(value)
				return
			}
			for _, inner := range value {
				walk(inner)
			}
		case []any:
			for _, inner := range value {
				walk(inner)
			}
		}
	}
	walk(m.body["result"])
}

// accepts makes errors results, rejects the other way round.
func accepts(_ *link, m *message) {
	if _, ok := m.body["error"]; ok {
		delete(m.body, "error")
		m.body["result"] = map[string]any{"status": "open", "expires_in": 120}
	}
}

func rejects(_ *link, m *message) {
	delete(m.body, "result")
	m.body["error"] = map[string]any{"type": "busy", "message": "not now"}
}

func otherError(_ *link, m *message) {
	if _, ok := m.body["error"]; ok {
		m.body["error"] = map[string]any{"type": "unknown", "message": "it did not work"}
	}
}

func wrongResponses() map[string]wrongHub {
	return map[string]wrongHub{
		"first level of the token": onResponse("response-topic", "", func(_ *link, m *message) {
			m.suffix = m.suffix[:strings.LastIndex(m.suffix, "/")]
		}),
		"id of its own": onResponse("response-form", "", func(_ *link, m *message) { m.body["id"] = "1" }),
		"result and error": onResponse("response-form", "devices.get", func(_ *link, m *message) {
			m.body["error"] = map[string]any{"type": "none", "message": ""}
		}),
		"accepts all methods": onResponse("unknown-method", "hubcheck.unknown", accepts),
		"one after the other": {line: "side-by-side", faults: faults{
			up: func(l *link, p packets.ControlPacket) bool {
				publish, ok := p.(*packets.PublishPacket)
				if ok && strings.Contains(publish.TopicName, "/response/") {
					time.Sleep(700 * time.Millisecond) // the hub is slow, and answers in turn
				}
				return true
			},
		}},
		"list with values": onResponse("devices.list", "devices.list", func(_ *link, m *message) {
			eachChannel(m, func(c map[string]any) { c["status"] = "unknown" })
		}),
		"list without units": onResponse("devices.list", "devices.list", func(_ *link, m *message) {
			eachChannel(m, func(c map[string]any) { delete(c, "unit") })
		}),
		"device without status": onResponse("devices.get", "devices.get", func(_ *link, m *message) {
			eachChannel(m, func(c map[string]any) { delete(c, "status") })
		}),
		"another error":        onResponse("devices.get-unknown", "devices.get", otherError),
		"forgets all":          onResponse("devices.forget", "devices.forget", accepts),
		"short window":         windowOf("pairing.open", 60),
		"any setup code":       onResponse("pairing-setup-code", "pairing.open", accepts),
		"pairing not closed":   onResponse("pairing.close", "pairing.close", rejects),
		"long window":          windowOf("removal.open", 3600),
		"removal not closed":   onResponse("removal.close", "removal.close", rejects),
		"no window of removal": onResponse("removal.open", "removal.open", rejects),
	}
}

func windowOf(method string, seconds int) wrongHub {
	return onResponse(method, method, func(_ *link, m *message) {
		if result, ok := m.body["result"].(map[string]any); ok {
			result["expires_in"] = seconds
		}
	})
}

func wrongCommands() map[string]wrongHub {
	const method = "channels.command"
	// again gives a repeated command a new id if the first has been answered, or has not been.
	again := func(line string, answered bool) wrongHub {
		wrong := onResponse(line, method, func(l *link, m *message) { l.memory["answered"] = true })
		wrong.faults.answer = func(l *link, m *message) bool {
			params, _ := m.body["params"].(map[string]any)
			id, ok := params["command_id"].(string)
			if !ok {
				return true
			}
			done, _ := l.memory["answered"].(bool)
			if l.memory["command"] == id && done == answered {
				params["command_id"] = id + "-again"
			}
			l.memory["command"], l.memory["answered"] = id, false
			return true
		}
		return wrong
	}
	return map[string]wrongHub{
		"command done at once": onResponse(method, method, func(_ *link, m *message) {
			eachChannel(m, func(c map[string]any) { c["status"] = "synchronized" })
		}),
		"command without desired": onResponse(method, method, func(_ *link, m *message) {
			eachChannel(m, func(c map[string]any) { c["desired"] = nil })
		}),
		"accepts wrong commands":  onResponse("command-rejected", method, accepts),
		"errors of its own":       onResponse("command-rejected", method, otherError),
		"runs repeats":            again("command-once", true),
		"runs simultaneous twice": again("command-simultaneous", false),
		"another answer": onResponse("command-once", method, func(l *link, m *message) {
			n, _ := l.memory["answers"].(int)
			l.memory["answers"] = n + 1
			eachChannel(m, func(c map[string]any) { c["available"] = n%2 == 0 })
		}),
		"no channel.desired": {line: "command-events", faults: faults{
			message: func(_ *link, m *message) bool {
				for _, e := range m.events() {
					if e["type"] == "channel.desired" {
						e["type"] = "channel.wanted"
					}
				}
				return true
			},
		}},
	}
}
