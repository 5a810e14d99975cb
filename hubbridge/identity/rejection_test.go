package identity

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
)

// TestRejectionLog: a rejected hub, which may try for days, has a line in the log once a minute for
// each reason.
func TestRejectionLog(t *testing.T) {
	t.Parallel()
	var lines bytes.Buffer
	now := time.Unix(0, 0)
	l := newRejectionLog(
		slog.New(slog.NewTextHandler(&lines, nil)), func() time.Time { return now },
	)
	request := func(client string) *jwt.AuthorizationRequestClaims {
		q := jwt.NewAuthorizationRequestClaims("x")
		q.ClientInformation.MQTT, q.ClientInformation.Host = client, "192.0.2.1"
		return q
	}
	for range 100 {
		l.add(request("hub-1"), reject(reasonNotCurrent, nil))
		l.add(request("hub-1"), reject(reasonNoDirectory, errors.New("away")))
		l.add(request("hub-2"), reject(reasonNotCurrent, nil))
	}
	if got := strings.Count(lines.String(), "\n"); got != 3 {
		t.Errorf("lines: got %d, want 3:\n%s", got, lines.String())
	}
	for _, want := range []string{
		`level=INFO msg="connection rejected" client_id=hub-1 address=192.0.2.1 reason=not_current_certificate`,
		`level=WARN msg="connection rejected" client_id=hub-1 address=192.0.2.1 reason=directory_unavailable error=away`,
	} {
		if !strings.Contains(lines.String(), want) {
			t.Errorf("no %s in:\n%s", want, lines.String())
		}
	}
	lines.Reset()
	now = now.Add(rejectionLogInterval)
	l.add(request("hub-1"), reject(reasonNotCurrent, nil))
	if lines.Len() == 0 {
		t.Error("a minute later: got no line, want one")
	}
	for n := range 3 * rejectionsKept {
		l.add(request(fmt.Sprint(n)), reject(reasonUnknownHub, nil))
	}
	if len(l.last) > rejectionsKept {
		t.Errorf("remembered: got %d, want at most %d", len(l.last), rejectionsKept)
	}
}
