package domain_test

import (
	"testing"
	"time"

	"hubcloud/domain"
)

// near is a Desired that matches every number near it.
type near float64

func (n near) Matches(reported any) bool {
	r, ok := reported.(float64)
	return ok && r-float64(n) < 1 && float64(n)-r < 1
}

// TestChannelState checks the transitions between the contract's channel states, one on each line.
func TestChannelState(t *testing.T) {
	t.Parallel()
	const (
		unknown          = domain.ChannelUnknown
		synchronized     = domain.ChannelSynchronized
		pending          = domain.ChannelPending
		diverged, failed = domain.ChannelDiverged, domain.ChannelFailed
	)
	t0 := origin.At
	t1 := t0.Add(time.Second)
	type step func(domain.ChannelState) (domain.ChannelState, bool)
	command := func(v any) step {
		return func(s domain.ChannelState) (domain.ChannelState, bool) {
			return s.Commanded(v, t1), false
		}
	}
	report := func(v any) step {
		return func(s domain.ChannelState) (domain.ChannelState, bool) { return s.Reported(v, t1) }
	}
	giveUp := func(s domain.ChannelState) (domain.ChannelState, bool) {
		return s.Abandoned(), false
	}
	for name, tc := range map[string]struct {
		from domain.ChannelStatus
		was  any // reported before
		want any // asked before
		do   step
		then domain.ChannelStatus
		read any
		news bool
	}{
		"command to a channel that nothing is known of": {
			unknown, nil, nil, command(true), pending, nil, false,
		},
		"command to a synchronized channel": {
			synchronized, false, nil, command(true), pending, false, false,
		},
		"command to a pending channel": {
			pending, false, true, command(false), pending, false, false,
		},
		"command to a diverged channel": {
			diverged, false, true, command(true), pending, false, false,
		},
		"command to a failed channel": {
			failed, false, true, command(true), pending, false, false,
		},
		"first report": {
			unknown, nil, nil, report(true), synchronized, true, true,
		},
		"first report of what is asked": {
			pending, nil, true, report(true), synchronized, true, true,
		},
		"first report of something else": {
			pending, nil, true, report(false), diverged, false, true,
		},
		"report when nothing was asked": {
			synchronized, true, nil, report(false), synchronized, false, true,
		},
		"report of what is asked": {
			pending, false, true, report(true), synchronized, true, true,
		},
		"report of something else than what is asked": {
			pending, false, true, report(false), diverged, false, true,
		},
		"report of what was so already": {
			pending, true, true, report(true), synchronized, true, true,
		},
		"report of something else later": {
			synchronized, true, true, report(false), diverged, false, true,
		},
		"report of the same again": {
			synchronized, true, true, report(true), synchronized, true, false,
		},
		"report of what was asked by a diverged channel": {
			diverged, false, true, report(true), synchronized, true, true,
		},
		"report of something else by a diverged channel": {
			diverged, false, true, report(false), diverged, false, false,
		},
		"report of what was asked by a failed channel": {
			failed, false, true, report(true), synchronized, true, true,
		},
		"report of the old value by a failed channel": {
			failed, false, true, report(false), failed, false, false,
		},
		"give up the pending command": {
			pending, false, true, giveUp, failed, false, false,
		},
		"give up without a pending command": {
			synchronized, true, true, giveUp, synchronized, true, false,
		},
		"report that matches the desired value": {
			pending, 1.0, near(20), report(20.4), synchronized, 20.4, true,
		},
		"report that does not match the desired value": {
			pending, 1.0, near(20), report(21.4), diverged, 21.4, true,
		},
		"report of another type than the desired value": {
			pending, 1.0, near(20), report(true), diverged, true, true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := domain.ChannelState{Status: tc.from, Value: tc.was, Desired: tc.want}
			if tc.was != nil {
				s.ObservedAt = t0
			}
			got, news := tc.do(s)
			if got.Status != tc.then || got.Value != tc.read || news != tc.news {
				t.Errorf(
					"status %s, value %v, news %t; want %s, %v, %t", got.Status, got.Value, news,
					tc.then, tc.read, tc.news,
				)
			}
		})
	}
}

func TestNewChannelState(t *testing.T) {
	t.Parallel()
	if s := domain.NewChannelState(nil, origin.At); s != (domain.ChannelState{
		Status: domain.ChannelUnknown,
	}) {
		t.Errorf("NewChannelState(nil): got %+v", s)
	}
	if s := domain.NewChannelState(3.0, origin.At); s != (domain.ChannelState{
		Value: 3.0, ObservedAt: origin.At, Status: domain.ChannelSynchronized,
	}) {
		t.Errorf("NewChannelState of a value: got %+v", s)
	}
}

func TestParseChannelStatus(t *testing.T) {
	t.Parallel()
	for _, status := range []string{"unknown", "synchronized", "pending", "diverged", "failed"} {
		if got, ok := domain.ParseChannelStatus(status); !ok || string(got) != status {
			t.Errorf("ParseChannelStatus(%s): got %q, %t", status, got, ok)
		}
	}
	for _, bad := range []string{"", "Pending", "done", " failed"} {
		if got, ok := domain.ParseChannelStatus(bad); ok {
			t.Errorf("ParseChannelStatus(%q): got %q, want false", bad, got)
		}
	}
}
