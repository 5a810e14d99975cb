package protocol_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"hubcloud/hubbridge/protocol"
	"hubcloud/streams/streamstest"
)

// Each list item with the ID of a rule is read as a rule with its anchor, and no ID stands twice.
func TestRulesOfThePage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("README.md")
	streamstest.Must(t, err)
	seen := map[string]bool{}
	form := regexp.MustCompile(`^R-[a-z]+-[1-9][0-9]*$`)
	for _, rule := range protocol.Rules() {
		if seen[rule.ID] || !form.MatchString(rule.ID) || protocol.Sentence(rule.ID) == "" {
			t.Errorf("rule %s: the ID is repeated or not of the form R-name-1", rule.ID)
		}
		seen[rule.ID] = true
		if !strings.Contains(string(page), `<a id="`+rule.ID+`"></a>**`+rule.ID+`**`) {
			t.Errorf("README.md: rule %s has another anchor", rule.ID)
		}
	}
	items := regexp.MustCompile(`(?m)^- .*\*\*R-`).FindAllString(string(page), -1)
	if len(items) != len(seen) || len(seen) < 90 {
		t.Errorf("README.md has %d items that look like rules, and %d rules", len(items), len(seen))
	}
	for _, id := range regexp.MustCompile(`R-[a-z]+-[0-9]+`).FindAllString(string(page), -1) {
		if !seen[id] {
			t.Errorf("README.md refers to rule %s, which does not exist", id)
		}
	}
}
