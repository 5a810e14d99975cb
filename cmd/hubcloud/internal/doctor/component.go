package doctor

import (
	"fmt"
	"slices"
	"strings"
)

// Verdict is the state of a component.
type Verdict string

// The verdicts, from the best to the worst.
const (
	// OK means that no problem was found.
	OK Verdict = "ok"
	// Skipped means that the component cannot be checked from here.
	Skipped Verdict = "skipped"
	// Warning means that a problem is near, or that the setup is not fit for production.
	Warning Verdict = "warning"
	// Unknown means that the component did not answer.
	Unknown Verdict = "unknown"
	// Wrong means that the component has a problem now.
	Wrong Verdict = "wrong"
)

var severity = map[Verdict]int{OK: 0, Skipped: 1, Warning: 2, Unknown: 3, Wrong: 4}

// Component is the state of one part of an installation.
type Component struct {
	Name string `json:"name"`
	// OK reports whether no action is needed now: the verdict is ok, skipped or warning.
	OK      bool    `json:"ok"`
	Verdict Verdict `json:"verdict"`
	// Detail has all findings, good and bad.
	Detail string `json:"detail"`
	// Advice has one entry for each thing to do. Without any it is empty, not nil.
	Advice []string `json:"advice"`
}

// findings collects the findings of a check. The worst verdict becomes the component's.
type findings struct {
	Verdict Verdict  `json:"verdict"`
	Details []string `json:"details"`
	Advice  []string `json:"advice"`
}

func newFindings() *findings { return &findings{Verdict: OK, Advice: []string{}} }

// note adds a finding that is no problem.
func (f *findings) note(format string, args ...any) {
	f.Details = append(f.Details, fmt.Sprintf(format, args...))
}

// wrong adds a problem.
func (f *findings) wrong(format string, args ...any) *findings { return f.add(Wrong, format, args...) }

// warn adds what may become a problem.
func (f *findings) warn(format string, args ...any) *findings { return f.add(Warning, format, args...) }

// unclear adds what cannot be found out now.
func (f *findings) unclear(format string, args ...any) *findings {
	return f.add(Unknown, format, args...)
}

// skip adds what cannot be checked from here.
func (f *findings) skip(format string, args ...any) *findings { return f.add(Skipped, format, args...) }

func (f *findings) add(v Verdict, format string, args ...any) *findings {
	if severity[v] > severity[f.Verdict] {
		f.Verdict = v
	}
	f.note(format, args...)
	return f
}

// todo adds what to do about the last finding; "" for nothing.
func (f *findings) todo(advice string) {
	if advice != "" {
		f.Advice = append(f.Advice, advice)
	}
}

// grade adds a finding with its verdict and, unless that is OK, what to do about it.
func (f *findings) grade(v Verdict, advice, format string, args ...any) {
	if f.add(v, format, args...); v != OK {
		f.todo(advice)
	}
}

// verdictIf returns a verdict if what is bad is so, and OK otherwise.
func verdictIf(bad bool, v Verdict) Verdict {
	if bad {
		return v
	}
	return OK
}

// verdictOf returns Wrong, Warning or OK for what may be wrong or near to it.
func verdictOf(wrong, near bool) Verdict {
	if wrong {
		return Wrong
	}
	return verdictIf(near, Warning)
}

// unknown adds a failed request to the broker.
func (f *findings) unknown(what string, err error) {
	f.unclear("%s%v", what, err).todo(
		"try again; the broker's log may show why it does not answer",
	)
}

// merge adds the findings of another check, and its advice once.
func (f *findings) merge(other *findings) {
	if severity[other.Verdict] > severity[f.Verdict] {
		f.Verdict = other.Verdict
	}
	f.Details = append(f.Details, other.Details...)
	for _, advice := range other.Advice {
		if !slices.Contains(f.Advice, advice) {
			f.Advice = append(f.Advice, advice)
		}
	}
}

// putLastFirst moves the last detail, the most important one, before the others.
func (f *findings) putLastFirst() {
	last := len(f.Details) - 1
	f.Details = append(f.Details[last:], f.Details[:last]...)
}

// component returns the findings as the result of a check.
func (f *findings) component(name string) Component {
	return Component{
		Name: name, OK: severity[f.Verdict] <= severity[Warning], Verdict: f.Verdict,
		Detail: strings.Join(f.Details, "; "), Advice: f.Advice,
	}
}
