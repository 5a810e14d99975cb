package doctor

import (
	"context"
	"fmt"
	"strings"

	"hubcloud/streams/shares"
)

// checkShares reports who uses how much of what organizations share, and who is held back.
func checkShares(_ context.Context, v *visit, f *findings) {
	for _, use := range v.Shares.Report() {
		if used := usedText(use); used != "" {
			f.note("%s", used)
		}
		if held := heldBackText(use); held != "" {
			f.note("%s", held)
		}
	}
	if f.Verdict == OK && len(f.Details) == 0 {
		f.note("nobody uses much, and nobody was held back")
	}
}

// usedText describes what is used if it is more than half; "" otherwise.
func usedText(u shares.Use) string {
	if u.Limit == 0 || 2*u.Used <= u.Limit {
		return ""
	}
	var by []string
	for _, s := range u.By {
		if s.Used > 0 {
			by = append(by, fmt.Sprintf("%s %d", s.Spender, s.Used))
		}
	}
	return fmt.Sprintf("%d of %d %s are used: %s", u.Used, u.Limit, u.Resource, strings.Join(by, ", "))
}

// heldBackText describes who was held back since the service started; "" for nobody.
func heldBackText(u shares.Use) string {
	var by []string
	for _, s := range u.By {
		if s.HeldBack > 0 {
			by = append(by, fmt.Sprintf("%s %d times", s.Spender, s.HeldBack))
		}
	}
	if len(by) == 0 {
		return ""
	}
	return fmt.Sprintf("beyond the share of %s: %s", u.Resource, strings.Join(by, ", "))
}
