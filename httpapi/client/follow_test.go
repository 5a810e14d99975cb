package client

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// followed returns what a sequence of events yields: cursors, followed by `!` for those with a gap,
// and the error at the end. It leaves the loop after the wanted number of events.
func followed(sequence iter.Seq2[Event, error], most int) (cursors string, end error) {
	var all []string
	for event, err := range sequence {
		switch {
		case IsGap(err):
			all = append(all, event.Cursor+"!")
		case err != nil:
			return strings.Join(all, " "), err
		default:
			all = append(all, event.Cursor)
		}
		if len(all) == most {
			break
		}
	}
	return strings.Join(all, " "), nil
}

// positions returns the cursor of each request, "-" for a request without one.
func positions(s *script) string {
	var all []string
	for _, r := range s.seen() {
		at := r.header.Get("Last-Event-ID")
		if values := strings.Split(r.query, "&"); at == "" &&
			strings.HasPrefix(values[0], "after=") {
			at = strings.TrimPrefix(values[0], "after=")
		}
		if at == "" {
			at = "-"
		}
		all = append(all, at)
	}
	return strings.Join(all, " ")
}

// Whatever ends a connection, the next one continues after the last event, and no event is yielded
// twice.
func TestEventsAreTakenUpAgain(t *testing.T) {
	t.Parallel()
	half := frame("d")[:60]
	for name, tt := range map[string]struct {
		after   string
		options []EventsOption
		steps   []step
		want    string
		from    string
	}{
		"the server's end": {
			"a", nil, []step{events(nil, frames("b c")), events(errSilent, frames("d"))}, "b c d",
			"a c",
		},
		"a cut within a frame": {
			"a", nil,
			[]step{events(errBroken, frames("b c")+half), events(errSilent, frames("d"))}, "b c d",
			"a c",
		},
		"repeats after the break": {
			"a", nil, []step{events(errBroken, frames("b c")), events(errSilent, frames("b c d"))},
			"b c d", "a c",
		},
		"repeats within a stream": {
			"a", nil, []step{events(errSilent, frames("b b c b d"))}, "b c d", "a",
		},
		"a position without event": {
			"a", nil,
			[]step{
				events(nil, "id: p\n\n"), events(nil, frames("b"), ": keepalive\n\nid: q\n\n"),
				events(errSilent, frames("c d")),
			},
			"b c d", "a p q",
		},
		"an empty id": {
			"a", nil, []step{events(nil, frames("b"), "id\n\n"), events(errSilent, frames("c d"))},
			"b c d", "a b",
		},
		"temporary errors": {"a", nil, []step{
			apiError(503, ErrHubUnavailable), apiError(500, ErrInternal),
			apiError(429, ErrRateLimited, "Retry-After", "2"), answer(502, "bad gateway"),
			events(errSilent, frames("b c d")),
		}, "b c d", "a a a a a"},
		"garbage now and then": {"a", nil, []step{
			events(nil, "data: {]\n\n"), events(nil, "data: {]\n\n"),
			events(nil, frames("b"), "data: {]\n\n"), events(nil, "data: {]\n\n"),
			events(errSilent, frames("c d")),
		}, "b c d", "a a a b b"},
		"an unknown type": {
			"a", nil,
			[]step{events(errSilent, frames("b"), frameOf("c", "hub.sang", `[1]`), frames("d"))},
			"b c d", "a",
		},
		"history first": {
			"", nil, []step{pageOf("b c", "c", true), events(errSilent, frames("d"))}, "b c d",
			"- c",
		},
		"history and overlap": {"", nil, []step{
			pageOf("b c", "c", false), events(errSilent, frames("b c d"))}, "b c d", "- c"},
		"from now": {"", []EventsOption{FromNow()}, []step{
			events(errSilent, "id: p\n\n"), events(nil, frames("b")),
			events(errSilent, frames("c d"))}, "b c d", "- p b"},
		"from now, later": {"", []EventsOption{FromNow()}, []step{
			broken, events(nil), events(errSilent, "id: p\n\n"),
			events(errSilent, frames("b c d"))}, "b c d", "- - - p"},
		"from now, where nobody says": {"", []EventsOption{FromNow()}, []step{
			events(errSilent, ": hello\n\n"), pageOf("x", "x", true), pageOf("y", "y", false),
			events(errSilent, frames("b c d"))}, "b c d", "- - x y"},
		"polls": {"a", []EventsOption{LongPoll()}, []step{
			pageOf("b", "b", true), pageOf("c", "c", false), broken, apiError(500, ErrInternal),
			pageOf("", "p", false), pageOf("b c d", "d", false)}, "b c d", "a b c c c p"},
	} {
		synctest.Test(t, func(t *testing.T) {
			c, s := playing(t, nil, tt.steps...)
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
			defer cancel()
			got, err := followed(c.Events(ctx, "hub-1", tt.after, tt.options...), 3)
			if err != nil || got != tt.want || positions(s) != tt.from {
				t.Errorf(
					"%s: got %q, %v, from %q, want %q, from %q", name, got, err, positions(s),
					tt.want, tt.from,
				)
			}
		})
	}
}

// Errors that retries do not help against end the sequence.
func TestEventsEnd(t *testing.T) {
	t.Parallel()
	expired := apiError(410, ErrCursorExpired)
	for name, tt := range map[string]struct {
		options []EventsOption
		steps   []step
		want    string
		end     []error
		tries   int
	}{
		"410": {
			nil, []step{events(nil, frames("b")), expired}, "b",
			[]error{ErrResync, ErrCursorExpired}, 2,
		},
		"a revoked key": {
			nil, []step{events(nil, frames("b")), apiError(401, ErrUnauthenticated)}, "b",
			[]error{ErrUnauthenticated}, 2,
		},
		"no scope": {
			nil, []step{apiError(403, ErrInsufficientScope)}, "", []error{ErrInsufficientScope}, 1,
		},
		"garbage at one place": {
			nil, []step{events(nil, frames("b")), events(nil, "data: {]\n\n")}, "b",
			[]error{ErrProtocol}, 4,
		},
		"events without cursor": {
			nil, []step{events(nil, "data: {\"type\":\"x\"}\n\n")}, "", []error{ErrProtocol}, 3,
		},
		"ids of other events": {
			nil, []step{events(nil, "id: x\n"+strings.TrimPrefix(frame("b"), "id: b\n"))}, "",
			[]error{ErrProtocol}, 3,
		},
		"ids that cannot be sent": {
			nil, []step{events(nil, "id: x\x01\n\n")}, "", []error{ErrProtocol}, 3,
		},
		"skips without numbers": {
			nil,
			[]step{
				events(nil, frameOf("b", EventHubEventsSkipped, `{"from":"x"}`)),
				events(nil, frameOf("c", EventHubEventsSkipped, `[]`)),
			},
			"", []error{ErrProtocol}, 3,
		},
		"pages without next_cursor": {
			[]EventsOption{LongPoll()}, []step{answer(200, `{"data":[],"has_more":false}`)}, "",
			[]error{ErrProtocol}, 3,
		},
		"pages that stand still": {
			[]EventsOption{LongPoll()}, []step{pageOf("", "a", true)}, "", []error{ErrProtocol}, 3,
		},
		"pages that go round": {
			[]EventsOption{LongPoll()}, []step{pageOf("b c", "c", true), pageOf("b c", "c", true)},
			"b c", []error{ErrProtocol}, 4,
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			c, s := playing(t, nil, tt.steps...)
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			got, err := followed(c.Events(ctx, "hub-1", "a", tt.options...), 100)
			for _, end := range tt.end {
				if !errors.Is(err, end) {
					t.Errorf("%s: ended with %v, want %v", name, err, end)
				}
			}
			if got != tt.want || len(s.seen()) != tt.tries {
				t.Errorf(
					"%s: got %q after %d tries, want %q after %d", name, got, len(s.seen()),
					tt.want, tt.tries,
				)
			}
		})
	}
}

// A loop that returns at errors stops at a gap; one that checks IsGap continues after it.
func TestGapsCannotBeOverlooked(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, _ := playing(
			t,
			nil,
			events(
				errSilent, frames("b"), frameOf("c", EventHubEventsSkipped, `{"from":17,"to":42}`),
				frames("d"),
			),
		)
		if got, err := followed(c.Events(t.Context(), "hub-1", "a"), 3); got != "b c! d" ||
			err != nil {
			t.Errorf("got %q, %v, want b c! d, nil", got, err)
		}
		for event, err := range c.Events(t.Context(), "hub-1", "a") {
			if err == nil {
				continue
			}
			gap, ok := errors.AsType[*GapError](err)
			if !ok || gap.Skipped != (EventsSkipped{From: 17, To: 42}) || event.Cursor != "c" ||
				gap.Event.Cursor != "c" ||
				!strings.Contains(err.Error(), "17 to 42") {
				t.Errorf("got %+v, %v, want event c and the gap 17 to 42", event, err)
			}
			break
		}
	})
}

// OnPosition gets each position that is not an event's cursor once.
func TestOnPosition(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var positions []string
		note := OnPosition(func(cursor string) { positions = append(positions, cursor) })
		c, _ := playing(
			t, nil, events(nil, "id: a\n\nid: p\n\nid: p\n\n", frames("b"), "id: b\n\nid: q\n\n"),
			events(errSilent, frames("b c")),
		)
		got, err := followed(c.Events(t.Context(), "hub-1", "a", note), 2)
		if got != "b c" || err != nil || fmt.Sprint(positions) != "[p q]" {
			t.Errorf("got %q, %v, positions %v, want b c, nil, [p q]", got, err, positions)
		}
		positions = nil
		c, _ = playing(
			t, nil, pageOf("b", "b", false), pageOf("", "b", false), pageOf("", "r", false),
			pageOf("c", "c", false),
		)
		got, err = followed(c.Events(t.Context(), "hub-1", "a", LongPoll(), note), 2)
		if got != "b c" || err != nil || fmt.Sprint(positions) != "[r]" {
			t.Errorf("got %q, %v, positions %v, want b c, nil, [r]", got, err, positions)
		}
	})
}

// A sequence can begin with the newest events, and tells once when it has caught up, by stream and by
// a page.
func TestLastAndCaughtUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const mark = "id: c\nevent: stream.caught_up\n" +
			`data: {"cursor":"c","type":"stream.caught_up","hub_id":null}` + "\n\n"
		for name, tt := range map[string]struct {
			after  string
			script []step
			query  string
		}{
			"by stream": {"a", []step{events(errSilent, frames("b c")+mark+frames("d"))}, "caught_up=true"},
			"by a page": {"", []step{
				pageOf("b c", "c", false), events(errSilent, frames("d")),
			}, "last=2"},
		} {
			var got []string
			caughtUp := OnCaughtUp(func() { got = append(got, "caught up") })
			c, s := playing(t, nil, tt.script...)
			for event, err := range c.Events(t.Context(), "hub-1", tt.after, Last(2), caughtUp) {
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				if got = append(got, event.Cursor); event.Cursor == "d" {
					break
				}
			}
			if query := s.seen()[0].query; !strings.Contains(query, tt.query) {
				t.Errorf("%s: first query is %q, want %s in it", name, query, tt.query)
			}
			if want := "b,c,caught up,d"; strings.Join(got, ",") != want {
				t.Errorf("%s: got %v, want %s", name, got, want)
			}
		}
	})
}

// The second range starts where the first one started.
func TestASequenceCanBeRangedOverTwice(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, s := playing(t, nil, events(errSilent, frames("b c")))
		sequence := c.Events(t.Context(), "hub-1", "a")
		first, _ := followed(sequence, 2)
		second, _ := followed(sequence, 2)
		if first != "b c" || second != "b c" || positions(s) != "a a" {
			t.Errorf(
				"got %q, then %q, from %q, want b c twice, from a a", first, second, positions(s),
			)
		}
	})
}
