package check_test

import (
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"hubcloud/hubbridge/kit/check"
	"hubcloud/hubbridge/protocol"
	"hubcloud/streams/streamstest"
)

// The page of the protocol has the lines of the check, as the table has them.
func TestPageHasLines(t *testing.T) {
	t.Parallel()
	page, err := fs.ReadFile(protocol.Files(), "README.md")
	streamstest.Must(t, err)
	var table strings.Builder
	for _, l := range check.Lines() {
		kind := ""
		switch {
		case l.Optional:
			kind = " (optional)"
		case l.Recommended:
			kind = " (recommended)"
		}
		var rules []string
		for _, rule := range l.Rules {
			rules = append(rules, fmt.Sprintf("[%s](#%s)", rule, rule))
		}
		fmt.Fprintf(&table, "| `%s`%s | %s | %s |\n", l.ID, kind, l.Title, strings.Join(rules, " "))
	}
	if !strings.Contains(string(page), "|---|---|---|\n"+table.String()+"\n") {
		t.Errorf("the page does not have this table:\n%s", table.String())
	}
}
