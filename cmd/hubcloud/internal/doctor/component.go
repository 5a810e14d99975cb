package doctor

import (
	"errors"
	"fmt"
)

// Verdict is what the doctor makes of a component.
type Verdict string

// The verdicts, from well to worst.
const (
	// OK says that nothing is wrong.
	OK Verdict = "ok"
	// Skipped says that there is nothing to look at from here; that is nobody's mistake.
	Skipped Verdict = "skipped"
	// Warning says that something will go wrong, or is not as it should be in an installation that
	// matters.
	Warning Verdict = "warning"
	// Unknown says that something that should have answered did not.
	Unknown Verdict = "unknown"
	// Wrong says that something is wrong now.
	Wrong Verdict = "wrong"
)

var severity = map[Verdict]int{OK: 0, Skipped: 1, Warning: 2, Unknown: 3, Wrong: 4}

// Component is one part of an installation, and how it is.
type Component struct {
	Name string `json:"name"`
	// OK says that nobody has to act now: it is true of what is ok, skipped, or a warning.
	OK      bool    `json:"ok"`
	Verdict Verdict `json:"verdict"`
	// Detail says what was found, good and bad.
	Detail string `json:"detail"`
	// Advice says what to do, one entry for each thing; empty, not null, when there is nothing to
	// do.
	Advice []string `json:"advice"`
}

// findings gathers what a check finds. The worst of it is the component's verdict.
type findings struct {
	verdict Verdict
	details []string
	advice  []string
}

func newFindings() *findings { return &findings{verdict: OK, advice: []string{}} }

// note adds something that is as it should be.
func (f *findings) note(format string, args ...any) {
	f.details = append(f.details, fmt.Sprintf(format, args...))
}

// add adds something that is not, and what to do about it; advice may be empty when other advice
// says it, or nothing can be done.
func (f *findings) add(v Verdict, detail, advice string) {
	if severity[v] > severity[f.verdict] {
		f.verdict = v
	}
	f.details = append(f.details, detail)
	if advice != "" {
		f.advice = append(f.advice, advice)
	}
}

// untold adds what could not be learned of the broker.
func (f *findings) untold(what string, err error) {
	advice := "ask again; the broker's log may say why it does not answer"
	if errors.Is(err, errNoBroker) {
		advice = "see the component broker"
	}
	f.add(Unknown, what+err.Error(), advice)
}

// lead puts the last detail in front of the others: what matters most comes first.
func (f *findings) lead() {
	last := len(f.details) - 1
	f.details = append(f.details[last:], f.details[:last]...)
}
