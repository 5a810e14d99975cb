package orgfeed

import (
	"slices"
	"testing"
	"time"

	"hubcloud/domain"
)

// A reader from the newest events, or since a time, gets exactly these until it has caught up,
// whether the ring has them or the logs.
func TestStart(t *testing.T) {
	t.Parallel()
	f := start(t, Config{RingEvents: 20})
	for n := range 4 {
		f.add(hubN(n), "org", "site")
	}
	f.add(hubN(9), "other", "site")
	for i := range 30 {
		f.append(hubN(i%3), "a.b", 2)
		f.append(hubN(3), "c.d", 1)
		f.append(hubN(9), "a.b", 1)
	}
	all, _ := f.pages("org", everything, "", 500)
	typed := domain.EventFilter{Types: []string{"c.*"}}
	few, _ := f.pages("org", typed, "", 500)
	none := domain.EventFilter{Types: []string{"none"}}
	for name, tt := range map[string]struct {
		filter domain.EventFilter
		from   string
		want   []event
	}{
		"the last one":                {everything, f.lastOf(everything, 1), all[len(all)-1:]},
		"the last 50":                 {everything, f.lastOf(everything, 50), all[len(all)-50:]},
		"the last 7 of a type":        {typed, f.lastOf(typed, 7), few[len(few)-7:]},
		"more than there are":         {typed, f.lastOf(typed, 500), few},
		"a type without events":       {none, f.lastOf(none, 3), nil},
		"since before the first":      {everything, f.Since(time.Now().Add(-time.Minute)), all},
		"since beyond the retention":  {everything, f.Since(time.Time{}.AddDate(1990, 0, 0)), all},
		"since after the last events": {everything, f.Since(time.Now().Add(time.Minute)), nil},
	} {
		r := f.follow(tt.filter, tt.from)
		reached, err := r.CaughtUp(t.Context())
		if err != nil {
			t.Fatalf("%s: CaughtUp: %v", name, err)
		}
		var got []event
		for !reached() {
			got = append(got, f.next(r, 9)...)
		}
		same := func(a, b event) bool { return a.Data.N == b.Data.N }
		if !slices.EqualFunc(got, tt.want, same) {
			t.Errorf("%s: got %d events %v, want %d", name, len(got), got, len(tt.want))
		}
	}
}

func (f *fixture) lastOf(filter domain.EventFilter, n int) string {
	f.tb.Helper()
	position, err := f.Last(f.tb.Context(), "org", filter, n)
	if err != nil {
		f.tb.Fatalf("Last %d: %v", n, err)
	}
	return position
}
