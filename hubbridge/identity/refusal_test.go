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

// TestRefusalLog: a hub that is locked out tries for days, and must neither fill the log nor be
// absent from it.
func TestRefusalLog(t *testing.T) {
	t.Parallel()
	var lines bytes.Buffer
	now := time.Unix(0, 0)
	l := newRefusalLog(slog.New(slog.NewTextHandler(&lines, nil)), func() time.Time { return now })
	question := func(client string) *jwt.AuthorizationRequestClaims {
		q := jwt.NewAuthorizationRequestClaims("x")
		q.ClientInformation.MQTT, q.ClientInformation.Host = client, "192.0.2.1"
		return q
	}
	for range 100 {
		l.add(question("hub-1"), refuse(reasonNotCurrent, nil))
		l.add(question("hub-1"), refuse(reasonNoDirectory, errors.New("away")))
		l.add(question("hub-2"), refuse(reasonNotCurrent, nil))
	}
	if got := strings.Count(lines.String(), "\n"); got != 3 {
		t.Errorf("%d lines:\n%s", got, lines.String())
	}
	for _, want := range []string{
		`level=INFO msg="connection refused" client_id=hub-1 address=192.0.2.1 reason=not_current_certificate`,
		`level=WARN msg="connection refused" client_id=hub-1 address=192.0.2.1 reason=directory_unavailable error=away`,
	} {
		if !strings.Contains(lines.String(), want) {
			t.Errorf("no %s in:\n%s", want, lines.String())
		}
	}
	lines.Reset()
	now = now.Add(refusalEvery)
	l.add(question("hub-1"), refuse(reasonNotCurrent, nil))
	if lines.Len() == 0 {
		t.Error("a minute later it says nothing")
	}
	for n := range 3 * refusalsKept {
		l.add(question(fmt.Sprint(n)), refuse(reasonUnknownHub, nil))
	}
	if len(l.last) > refusalsKept {
		t.Errorf("%d remembered", len(l.last))
	}
}
