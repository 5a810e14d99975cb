package protocol_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"hubcloud/hubbridge/protocol"
)

// rulePattern matches a rule on the page: a list item with an anchor, the ID and the sentence.
var rulePattern = regexp.MustCompile(`^- <a id="([^"]+)"></a>\*\*([^*]+)\*\* (.+)$`)

// rulesOfPage returns the rules of README.md in their order.
func rulesOfPage(t *testing.T) (rules []protocol.Rule) {
	t.Helper()
	page, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(page)) {
		line = strings.TrimRight(line, "\n")
		match := rulePattern.FindStringSubmatch(line)
		if match == nil {
			if strings.HasPrefix(line, "- ") && strings.Contains(line, "R-") {
				t.Errorf("README.md: not written as a rule: %q", line)
			}
			continue
		}
		if match[1] != match[2] {
			t.Errorf("README.md: rule %s has the anchor %s", match[2], match[1])
		}
		rules = append(rules, protocol.Rule{ID: match[2], Sentence: match[3]})
	}
	return rules
}

func TestRulesAreThoseOfThePage(t *testing.T) {
	t.Parallel()
	page, table := rulesOfPage(t), protocol.Rules()
	seen := map[string]bool{}
	form := regexp.MustCompile(`^R-[a-z]+-[1-9][0-9]*$`)
	for _, rule := range table {
		if seen[rule.ID] || !form.MatchString(rule.ID) {
			t.Errorf("rule %s: the ID is repeated or not of the form R-name-1", rule.ID)
		}
		seen[rule.ID] = true
		if !slices.Contains(page, rule) {
			t.Errorf("README.md lacks rule %s with the sentence %q", rule.ID, rule.Sentence)
		}
	}
	for _, rule := range page {
		if !slices.Contains(table, rule) {
			t.Errorf("Rules lacks rule %s with the sentence %q", rule.ID, rule.Sentence)
		}
	}
	if !slices.Equal(page, table) {
		t.Error("README.md and Rules have the rules in another order")
	}
}

// TestPageRefersToRulesThatExist checks the identifiers in the running text.
func TestPageRefersToRulesThatExist(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range regexp.MustCompile(`R-[a-z]+-[0-9]+`).FindAllString(string(page), -1) {
		if !slices.ContainsFunc(
			protocol.Rules(), func(r protocol.Rule) bool { return r.ID == id },
		) {
			t.Errorf("README.md refers to rule %s, which does not exist", id)
		}
	}
}
