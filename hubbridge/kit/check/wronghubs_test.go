package check_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/eclipse/paho.mqtt.golang/packets"
	"go.uber.org/goleak"

	"hubcloud/hubbridge/kit/check"
	"hubcloud/hubbridge/kit/hub"
	"hubcloud/hubbridge/kit/virtualhub"
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
	wanted := func(r check.Result) bool {
		if r.ID == "command-after-unavailable" { // see TestHubBecomesReady
			return r.Status == check.NotSeen
		}
		return r.Status == check.Passed
	}
	var report check.Report
	for range tries {
		report = checkHub(t, check.Config{Commands: 2100, Timeout: 4 * time.Minute}, faults{})
		if !slices.ContainsFunc(report, func(r check.Result) bool { return !wanted(r) }) {
			break
		}
	}
	for _, r := range report {
		if !wanted(r) {
			t.Errorf("line %s: got %s: %s %s", r.ID, r.Status, r.Detail, r.Message)
		}
	}
	if !report.OK() {
		t.Error("OK() = false, want true")
	}
}

// tries is how often a hub is checked before a report that is not as wanted counts: lines have
// times of seconds, and a busy machine may be late.
const tries = 3

// failedLines returns the lines that a hub has failed.
func failedLines(report check.Report) (lines []string) {
	for _, r := range report {
		if r.Status == check.Failed {
			lines = append(lines, r.ID)
		}
	}
	return lines
}

// TestWrongHubs: each wrong hub fails at its line and at no other of the lines that are observed.
func TestWrongHubs(t *testing.T) {
	t.Parallel()
	reports := make(map[string]check.Report)
	var mu sync.Mutex
	var running sync.WaitGroup
	// All hubs at once, in place of parallel subtests: they wait most of the time. The hub that
	// does not wait is judged by a fraction of a second, so it runs before them.
	alone := make(chan struct{})
	for name, wrong := range wrongHubs() {
		running.Go(func() {
			if name == "no wait" {
				defer close(alone)
			} else {
				<-alone
			}
			config := check.Config{
				Only:    append(observed(), wrong.line),
				Timeout: 2 * time.Minute,
			}
			if wrong.line == "send-window" || wrong.line == "survives-full-queue" {
				config.Commands = 2100
			}
			if wrong.line == "command-after-unavailable" {
				config.ReadyWait = time.Second
			}
			if wrong.timeout > 0 {
				config.Timeout = wrong.timeout
			}
			var report check.Report
			for range tries {
				report = checkHub(t, config, wrongHubs()[name].faults)
				if slices.Equal(failedLines(report), []string{wrong.line}) {
					break
				}
			}
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
			for _, r := range reports[name] {
				if r.Status == check.Failed {
					t.Logf("%s: %s; message %q", r.ID, r.Detail, r.Message)
				}
				if r.ID == wrong.line && r.Status == check.NotSeen {
					t.Logf("%s not seen: %s", r.ID, r.Detail)
				}
			}
			if failed := failedLines(reports[name]); !slices.Equal(failed, []string{wrong.line}) {
				t.Errorf("failed lines = %q, want %q", failed, wrong.line)
			}
			recommended := slices.Contains(
				[]string{"hello-info", "waits-to-reconnect", "recovers-ca"}, wrong.line,
			)
			if ok := reports[name].OK(); ok != recommended {
				t.Errorf("OK() = %v, want %v", ok, recommended)
			}
		})
	}
	for _, l := range check.Lines() {
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
func checkHub(t *testing.T, config check.Config, f faults) check.Report {
	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Minute)
	defer cancel()
	checked, err := check.New(config)
	if err != nil {
		t.Error(err)
		return nil
	}
	p := startProxy(t, checked.EnrolURL(), f)
	cfg := virtualhub.Config{
		Config: hub.Config{
			EnrollURL: checked.EnrolURL(), Serial: checked.Serial(), Secret: checked.Secret(),
			HTTPClient: &http.Client{Transport: p, Timeout: time.Minute},
			Logger:     slog.New(slog.DiscardHandler),
		},
		Devices: []virtualhub.DeviceSpec{{Kind: "outlet"}, {Kind: "climate_sensor"}, {Kind: "lock"}}, Quiet: true,
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
	report, err := checked.Run(ctx)
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
		"long keep-alive": onConnect(
			"keep-alive",
			func(p *packets.ConnectPacket) { p.Keepalive = 300 },
		),
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
		"former certificate": {
			line:   "current-certificate",
			faults: faults{formerCertificate: true},
		},
		"no return":            {line: "survives-cut", faults: faults{connections: 1}},
		"no return, takeover":  {line: "survives-takeover", faults: faults{connections: 2}},
		"no return, rejection": {line: "survives-rejection", faults: faults{connections: 3}},
		"trusts every broker":  {line: "verifies-broker", faults: faults{trusting: true}},
		"stays with its ca":    {line: "recovers-ca", faults: faults{blind: true}},
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
						"protocol":      1,
						"log":           "first",
						"oldest":        1,
						"newest":        0,
						"clock_trusted": true,
						"firmware":      map[string]any{"version": "1"},
						"network": map[string]any{
							"type":      "ethernet",
							"interface": "eth0",
							"metered":   false,
						},
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
