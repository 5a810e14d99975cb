package broker

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"golang.org/x/time/rate"
)

// TestServerLogger checks that lines about clients and about the recovery after a crash are not
// logged above debug level, that others are, and that a flood is limited.
func TestServerLogger(t *testing.T) {
	t.Parallel()
	var lines bytes.Buffer
	l := newServerLogger(slog.New(slog.NewTextHandler(&lines, nil)), newFaults(), func(string) {})
	l.Noticef("Server is ready")
	l.Errorf("%s - %s", "[::1]:4711 - mid:12", "TLS handshake error: EOF")
	l.Warnf("Auth callout service returned an error: refused")
	l.Warnf(
		"Filestore [%s] TTL state is outdated; attempting to recover using linear scan (seq 1 to 187)",
		"KV_leases",
	)
	l.Warnf(
		"Filestore [%s] Stream state outdated, last block has additional entries, will rebuild",
		"HUB_x",
	)
	l.Warnf(
		"    Missing consumer metafile %q",
		"/data/nats/jetstream/SHARD09/streams/$MQTT_rmsgs/obs/x/meta.inf",
	)
	if lines.Len() > 0 {
		t.Fatalf("want no lines, got:\n%s", lines.String())
	}
	l.Warnf("Filestore [%s] Stream state checksum did not match", "HUB_x")
	l.Errorf("JetStream out of %s", "resources")
	for _, want := range []string{
		"level=WARN msg=\"Filestore [HUB_x]",
		"level=ERROR msg=\"JetStream out of resources\" component=nats-server",
	} {
		if !strings.Contains(lines.String(), want) {
			t.Errorf("want %s, got:\n%s", want, lines.String())
		}
	}
	lines.Reset()
	for range 1000 {
		l.Errorf("flood")
	}
	if got := strings.Count(lines.String(), "\n"); got > logBurst+10 {
		t.Errorf("lines of a flood: got %d, want at most %d", got, logBurst+10)
	}
	lines.Reset()
	l.limit = rate.NewLimiter(rate.Inf, 1)
	l.Errorf("after the flood")
	if !strings.Contains(lines.String(), "lines_suppressed=") {
		t.Errorf("want lines_suppressed, got: %s", lines.String())
	}
	l.Fatalf("cannot %s", "listen")
	l.Fatalf("and more")
	if first := <-l.fatal; first != "cannot listen" {
		t.Errorf("fatal error: got %q, want the first", first)
	}
}

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
