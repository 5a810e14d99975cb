package bench

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
)

// aim is the required ratio of a value to its limit: at least or at most.
type aim struct {
	Least, Most float64
}

func atLeast(times float64) aim { return aim{Least: times} }
func atMost(times float64) aim  { return aim{Most: times} }

func (a aim) String() string {
	if a.Least > 0 {
		return fmt.Sprintf("≥ %g", a.Least)
	}
	return fmt.Sprintf("≤ %g", a.Most)
}

func (a aim) met(ratio float64) bool {
	if a.Least > 0 {
		return ratio >= a.Least
	}
	return ratio <= a.Most
}

// row is one line of the table: the values of each round and their limits.
type row struct {
	Measure string
	Unit    string
	Values  []float64
	Limits  []float64
	Aim     aim
	// Difference is true for differences between two measurements, which tiny sizes make zero or
	// negative.
	Difference bool
	// Note explains the figures.
	Note string
}

func (r row) ratio() float64 { return median(r.Values) / median(r.Limits) }

func (r row) verdict() string {
	if r.Aim.met(r.ratio()) {
		return "met"
	}
	return "short"
}

// against returns the row with a fixed figure as its limit.
func (r row) against(limit float64, aim aim) row {
	r.Measure += ", required"
	r.Limits, r.Aim, r.Note = []float64{limit}, aim, ""
	return r
}

// report collects the rows of a run. It is safe for concurrent use.
type report struct {
	mu   sync.Mutex
	rows []row
	// busy has, for each measurement, the share of the processors in use just before it.
	busy []float64
}

func (r *report) add(rows ...row) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rows = append(r.rows, rows...)
}

// table returns the rows as a table.
func (r *report) table() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var text strings.Builder // writes to it do not fail
	t := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(
		t, "measure\tvalue\tlimit\tunit\tratio\taim\tverdict\tvalue min–max\tlimit min–max",
	)
	for _, row := range r.rows {
		fmt.Fprintf(
			t, "%s\t%s\t%s\t%s\t%.2f\t%s\t%s\t%s\t%s\n", row.Measure, figure(median(row.Values)),
			figure(median(row.Limits)), row.Unit, row.ratio(), row.Aim, row.verdict(),
			span(row.Values), span(row.Limits),
		)
	}
	_ = t.Flush()
	if most := slices.Max(append(r.busy, 0)); most > 0.05 {
		fmt.Fprintf(
			&text, "\nThe machine was not idle: before one of the measurements other processes used "+
				"%.0f %% of its processors.\n", 100*most,
		)
	}
	for _, row := range r.rows {
		if row.Note != "" {
			fmt.Fprintf(&text, "  %s: %s\n", row.Measure, row.Note)
		}
	}
	return text.String()
}

// span formats the minimum and the maximum.
func span(values []float64) string {
	if len(values) < 2 {
		return "one round"
	}
	return figure(slices.Min(values)) + "–" + figure(slices.Max(values))
}

// figure formats a number with three significant digits and separated thousands.
func figure(v float64) string {
	if v == 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		return fmt.Sprint(v)
	}
	decimals := max(0, 2-int(math.Floor(math.Log10(math.Abs(v)))))
	text := fmt.Sprintf("%.*f", decimals, v)
	whole, fraction, _ := strings.Cut(text, ".")
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if fraction == "" {
		return whole
	}
	return whole + "." + fraction
}

// median returns the median of the values, or NaN without any.
func median[N ~int64 | ~float64](values []N) float64 { return percentile(values, 0.5) }

// percentile returns the value below which the given part of the values lies, or NaN without any.
func percentile[N ~int64 | ~float64](values []N, part float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Clone(values)
	slices.Sort(sorted)
	at := part * float64(len(sorted)-1)
	low := int(at)
	if low+1 == len(sorted) {
		return float64(sorted[low])
	}
	return float64(sorted[low]) + (at-float64(low))*float64(sorted[low+1]-sorted[low])
}
