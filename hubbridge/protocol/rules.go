package protocol

import (
	"regexp"
	"strings"
	"sync"
)

// Rule is a rule of the hub protocol, as README.md states it.
type Rule struct {
	// ID identifies the rule, such as R-hello-1. It is also the rule's anchor on the page.
	ID string
	// Sentence is the text of the rule, in Markdown.
	Sentence string
}

// rulePattern matches a rule on the page: a list item with an anchor, the ID and the sentence.
var rulePattern = regexp.MustCompile(`(?m)^- <a id="([^"]+)"></a>\*\*([^*]+)\*\* (.+)$`)

// Rules returns every rule of the page, in its order.
var Rules = sync.OnceValue(func() (rules []Rule) {
	page, err := files.ReadFile("README.md")
	if err != nil {
		panic(err) // it is embedded
	}
	for _, match := range rulePattern.FindAllStringSubmatch(string(page), -1) {
		rules = append(rules, Rule{ID: match[2], Sentence: strings.TrimSpace(match[3])})
	}
	return rules
})

// Sentence returns the text of a rule; "" if there is no such rule.
func Sentence(id string) string {
	for _, r := range Rules() {
		if r.ID == id {
			return r.Sentence
		}
	}
	return ""
}
