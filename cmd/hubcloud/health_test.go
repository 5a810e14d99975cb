package main

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

// TestHealthDoesNotFlap: a part that is unwell for a moment does not make the process unready, one
// that stays unwell does, and what does not pass by itself does at once. The log is told of each
// change once.
func TestHealthDoesNotFlap(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		var problem *unwell
		h := &health{
			log:   slog.New(slog.NewTextHandler(&log, nil)),
			known: map[string]*condition{},
			parts: []part{
				{"part", func(context.Context) (string, *unwell) { return "fine", problem }},
			},
		}
		h.started.Store(true)
		expect := func(ok bool, detail string) {
			t.Helper()
			got := h.components(t.Context())
			if len(got) != 1 || got[0].OK != ok || got[0].Detail != detail ||
				got[0].Name != "part" {
				t.Errorf("%+v", got)
			}
		}
		expect(true, "fine")
		passing := &unwell{detail: "away", action: "wait", cause: errors.New("the cause")}
		for range 3 { // it comes and goes, and nobody hears of it
			problem = passing
			expect(true, "away")
			time.Sleep(2 * time.Second)
			expect(true, "away")
			problem = nil
			expect(true, "fine")
			time.Sleep(time.Second)
		}
		if log.Len() > 0 {
			t.Errorf("the log was told %s", log.String())
		}
		problem = passing
		expect(true, "away")
		time.Sleep(unwellAfter)
		for range 3 {
			expect(false, "away")
			time.Sleep(time.Second)
		}
		problem = nil
		expect(true, "fine")
		problem = &unwell{detail: "stopped", lasting: true}
		expect(false, "stopped")
		problem = nil
		expect(true, "fine")
		// Nobody asked for long: it is not known to have been unwell since.
		problem = passing
		expect(true, "away")
		time.Sleep(2 * unwellPause)
		expect(true, "away")
		for what, count := range map[string]int{"is not well": 2, "well again": 2, "the cause": 1} {
			if got := strings.Count(log.String(), what); got != count {
				t.Errorf("%q stands %d times in %s", what, got, log.String())
			}
		}
	})
}
