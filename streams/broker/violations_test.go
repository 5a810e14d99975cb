package broker

import "testing"

func TestParseViolation(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]violationLine{
		`127.0.0.1:4711 - mid:12 - Publish Violation - Subject "hub.other.hello"`: {
			12, ViolationPublish, "hub/other/hello",
		},
		`[::1]:4711 - mid:7 - "user" - Publish Violation - Subject "a.\"b"`: {
			7, ViolationPublish, `a/"b`,
		},
		`127.0.0.1:4711 - mid:12 - Subscription Violation - Subject "hub.>", SID 4`: {
			12, ViolationSubscribe, "hub/>",
		},
		`127.0.0.1:4711 - mid:12 - QoS=2 is disabled for PUBLISH messages`: {
			12, ViolationQoS2, "",
		},
		`127.0.0.1:4711 - cid:12 - Publish Violation - Subject "x"`:                       {},
		`127.0.0.1:4711 - mid:12 - Subscription Violation - Subject "$MQTT.sub.x", SID 4`: {},
		`127.0.0.1:4711 - mid:12 - Publish Violation - Subject "x`:                        {},
		`127.0.0.1:4711 - mid:99999999999999999999 - QoS=2 is disabled`:                   {},
		`127.0.0.1:4711 - mid:12 - Publish Violation - Subject "x - mid:5 - QoS=2 is"`: {
			12, ViolationPublish, "x - mid:5 - QoS=2 is",
		},
		`QoS=2 is disabled`: {}, ``: {},
	} {
		got, ok := parseViolation(text)
		if ok != (want != violationLine{}) || ok && got != want {
			t.Errorf("%s: got %+v, %v, want %+v", text, got, ok, want)
		}
	}
}
