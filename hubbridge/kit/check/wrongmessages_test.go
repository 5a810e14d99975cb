package check_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/eclipse/paho.mqtt.golang/packets"

	"hubcloud/hubbridge/kit/virtualhub"
)

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
		"time without offset": each(
			"event-form",
			func(e map[string]any) { e["time"] = "2026-01-02 03:04:05" },
		),
		"no endpoint": each("event-data", func(e map[string]any) {
			delete(e["data"].(map[string]any), "endpoint")
		}),
		"on and off": each("channel-values", func(e map[string]any) {
			if data := e["data"].(map[string]any); data["key"] == "switch" {
				data["value"] = map[any]string{true: "on", false: "off"}[data["value"]]
			}
		}),
		"no data": each("event-form", func(e map[string]any) { delete(e, "data") }),
		"reserved type": each(
			"reserved-types",
			func(e map[string]any) { e["type"] = "hub.ready" },
		),
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
		"id of its own": onResponse(
			"response-form",
			"",
			func(_ *link, m *message) { m.body["id"] = "1" },
		),
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
		"old last event": onResponse("last-event", "devices.list", func(_ *link, m *message) {
			if result, ok := m.body["result"].(map[string]any); ok {
				result["last_event"] = 0
			}
		}),
		"no slots": onResponse("credentials.list", "credentials.list", func(_ *link, m *message) {
			if result, ok := m.body["result"].(map[string]any); ok {
				delete(result, "slots")
			}
		}),
		"code not set":         onResponse("credentials.set", "credentials.set", rejects),
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
	// again returns a hub that runs a repeated command anew: one that repeats the first after its
	// answer, or before it.
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
		"remembers hub_unavailable": {line: "command-after-unavailable", faults: faults{
			answer: func(l *link, m *message) bool {
				params, _ := m.body["params"].(map[string]any)
				id, ok := params["command_id"].(string)
				if first, known := l.memory["first"]; !ok || known && first != id {
					return true
				}
				l.memory["first"] = id
				l.toCloud(l.publish(fmt.Sprintf("response/%s", m.body["token"]), map[string]any{
					"id": m.body["id"], "error": map[string]any{
						"type": "hub_unavailable", "message": "the radio is down",
					},
				}))
				return false
			},
		}},
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
