package device

import (
	"testing"
	"time"
)

// TestState holds the channel states of the contract, one transition a line.
func TestState(t *testing.T) {
	t.Parallel()
	t0 := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	t1 := t0.Add(time.Second)
	command := func(v Value) func(State) State { return func(s State) State { return s.Commanded(v, t1) } }
	report := func(v Value) func(State) State {
		return func(s State) State {
			next, _ := s.Reported(v, t1)
			return next
		}
	}
	fail := func(s State) State { return s.GivenUp() }
	for name, tc := range map[string]struct {
		from Status
		was  Value // reported before
		want Value // asked before
		do   func(State) State
		then Status
		read Value
	}{
		"command to a channel that nothing is known of":  {from: Unknown, do: command(true), then: Pending},
		"command to a synchronized channel":              {from: Synchronized, was: false, do: command(true), then: Pending, read: false},
		"command to a pending channel":                   {from: Pending, was: false, want: true, do: command(false), then: Pending, read: false},
		"command to a diverged channel":                  {from: Diverged, was: false, want: true, do: command(true), then: Pending, read: false},
		"command to a failed channel":                    {from: Failed, was: false, want: true, do: command(true), then: Pending, read: false},
		"first report":                                   {from: Unknown, do: report(true), then: Synchronized, read: true},
		"report when nothing was asked":                  {from: Synchronized, was: true, do: report(false), then: Synchronized, read: false},
		"report of what is asked":                        {from: Pending, was: false, want: true, do: report(true), then: Synchronized, read: true},
		"report of something else than what is asked":    {from: Pending, was: false, want: true, do: report(false), then: Diverged, read: false},
		"report of something else later":                 {from: Synchronized, was: true, want: true, do: report(false), then: Diverged, read: false},
		"report of the same again":                       {from: Synchronized, was: true, want: true, do: report(true), then: Synchronized, read: true},
		"report of what was asked by a diverged channel": {from: Diverged, was: false, want: true, do: report(true), then: Synchronized, read: true},
		"report of something else by a diverged channel": {from: Diverged, was: false, want: true, do: report(false), then: Diverged, read: false},
		"report of what was asked by a failed channel":   {from: Failed, was: false, want: true, do: report(true), then: Synchronized, read: true},
		"report of the old value by a failed channel":    {from: Failed, was: false, want: true, do: report(false), then: Failed, read: false},
		"pending is given up":                            {from: Pending, was: false, want: true, do: fail, then: Failed, read: false},
		"nothing is given up":                            {from: Synchronized, was: true, want: true, do: fail, then: Synchronized, read: true},
		"color without warm white": {
			from: Pending, want: Color{Red: 1, Green: 2, Blue: 3, WarmWhite: NotAsked},
			do: report(Color{Red: 1, Green: 2, Blue: 3, WarmWhite: 77}), then: Synchronized, read: Color{Red: 1, Green: 2, Blue: 3, WarmWhite: 77},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := State{Status: tc.from, Value: tc.was, Desired: tc.want}
			if tc.was != nil {
				s.ObservedAt = t0
			}
			got := tc.do(s)
			if got.Status != tc.then || got.Value != tc.read {
				t.Errorf("status %s, value %v; want %s, %v", got.Status, got.Value, tc.then, tc.read)
			}
		})
	}
}

// TestCommandLeavesValue holds that a command sets what is desired, and since when, and leaves what was reported alone.
func TestCommandLeavesValue(t *testing.T) {
	t.Parallel()
	t0 := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	s := State{Status: Synchronized, Value: false, ObservedAt: t0}.Commanded(true, t0.Add(time.Minute))
	if s.Value != false || !s.ObservedAt.Equal(t0) || s.Desired != true || !s.DesiredAt.Equal(t0.Add(time.Minute)) {
		t.Errorf("%+v", s)
	}
}

func TestNews(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for name, tc := range map[string]struct {
		s    State
		v    Value
		news bool
	}{
		"first":                              {State{Status: Unknown}, true, true},
		"same again":                         {State{Status: Synchronized, Value: true, ObservedAt: now}, true, false},
		"change":                             {State{Status: Synchronized, Value: true, ObservedAt: now}, false, true},
		"outcome of a command that was true": {State{Status: Pending, Value: true, Desired: true, ObservedAt: now}, true, true},
		"outcome of a jam":                   {State{Status: Pending, Value: false, Desired: true, ObservedAt: now}, false, true},
	} {
		if _, news := tc.s.Reported(tc.v, now); news != tc.news {
			t.Errorf("%s: news %v", name, news)
		}
	}
}
