package server

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A problem that passes at once does not make the replica unready; one that lasts does, and one
// that cannot pass by itself does at once. Each change is logged once.
func TestHealthDoesNotFlap(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		var current *problem
		h := &health{
			logger:     slog.New(slog.NewTextHandler(&log, nil)),
			conditions: map[string]*condition{},
			components: []component{
				{"part", func(context.Context) (string, *problem) { return "fine", current }},
			},
		}
		h.started.Store(true)
		expect := func(ok bool, detail string) {
			t.Helper()
			got := h.check(t.Context())
			if len(got) != 1 || got[0].OK != ok || got[0].Detail != detail ||
				got[0].Name != "part" {
				t.Errorf("components are %+v, want one, part, with ok %v, %q", got, ok, detail)
			}
		}
		expect(true, "fine")
		passing := &problem{detail: "away", action: "wait", cause: errors.New("the cause")}
		for range 3 {
			current = passing
			expect(true, "away")
			time.Sleep(2 * time.Second)
			expect(true, "away")
			current = nil
			expect(true, "fine")
			time.Sleep(time.Second)
		}
		if log.Len() > 0 {
			t.Errorf("problems that passed at once were logged: %s", log.String())
		}
		current = passing
		expect(true, "away")
		time.Sleep(unhealthyAfter)
		for range 3 {
			expect(false, "away")
			time.Sleep(time.Second)
		}
		current = nil
		expect(true, "fine")
		current = &problem{detail: "stopped", lasting: true}
		expect(false, "stopped")
		current = nil
		expect(true, "fine")
		// The component was not checked for long: it may have been healthy in between.
		current = passing
		expect(true, "away")
		time.Sleep(2 * staleAfter)
		expect(true, "away")
		for message, want := range map[string]int{
			"component unhealthy": 2, "component healthy again": 2, "the cause": 1,
		} {
			if got := strings.Count(log.String(), message); got != want {
				t.Errorf("%q was logged %d times, want %d:\n%s", message, got, want, log.String())
			}
		}
	})
}
