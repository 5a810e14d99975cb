package domain_test

import (
	"strings"
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

// TestChannelState checks the transitions between the contract's channel states, one on each line:
// the status, the value reported before and the one asked before; what happens; the status and the
// value afterwards, and whether that is news.
func TestChannelState(t *testing.T) {
	t.Parallel()
	values := map[string]any{
		"none": nil, "true": true, "false": false,
		"1": 1.0, "near20": near(20), "20.4": 20.4, "21.4": 21.4,
	}
	t0, t1 := origin.At, origin.At.Add(time.Second)
	for _, line := range []string{
		"unknown none none command true: pending none old",
		"synchronized false none command true: pending false old",
		"pending false true command false: pending false old",
		"diverged false true command true: pending false old",
		"failed false true command true: pending false old",
		"unknown none none report true: synchronized true news",
		"pending none true report true: synchronized true news",
		"pending none true report false: diverged false news",
		"synchronized true none report false: synchronized false news",
		"pending false true report true: synchronized true news",
		"pending false true report false: diverged false news",
		"pending true true report true: synchronized true news",
		"synchronized true true report false: diverged false news",
		"synchronized true true report true: synchronized true old",
		"diverged false true report true: synchronized true news",
		"diverged false true report false: diverged false old",
		"failed false true report true: synchronized true news",
		"failed false true report false: failed false old",
		"pending false true give-up none: failed false old",
		"synchronized true true give-up none: synchronized true old",
		"pending 1 near20 report 20.4: synchronized 20.4 news",
		"pending 1 near20 report 21.4: diverged 21.4 news",
		"pending 1 near20 report true: diverged true news",
	} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			f := strings.Fields(strings.Replace(line, ":", "", 1))
			s := domain.ChannelState{
				Status: domain.ChannelStatus(f[0]), Value: values[f[1]], Desired: values[f[2]],
			}
			if s.Value != nil {
				s.ObservedAt = t0
			}
			news := false
			switch f[3] {
			case "command":
				s = s.Commanded(values[f[4]], t1)
			case "report":
				s, news = s.Reported(values[f[4]], t1)
			default:
				s = s.Abandoned()
			}
			if string(s.Status) != f[5] || s.Value != values[f[6]] || news != (f[7] == "news") {
				t.Errorf("got status %s, value %v, news %t", s.Status, s.Value, news)
			}
		})
	}
}
