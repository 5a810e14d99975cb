package portal

import (
	_ "embed"
	"strings"
	"sync"
)

// batteries.txt has the batteries of models: a line has the type, a tab, and models with commas
// between them.
//
//go:embed batteries.txt
var batteriesText string

var batteries = sync.OnceValue(func() map[string]string {
	types := map[string]string{}
	for line := range strings.Lines(batteriesText) {
		kind, models, _ := strings.Cut(strings.TrimSpace(line), "\t")
		for model := range strings.SplitSeq(models, ",") {
			types[strings.ToUpper(strings.TrimSpace(model))] = kind
		}
	}
	return types
})

// batteryType returns the type of a device's batteries, as "4 × AA"; "" if its model does not tell
// it. A word of the model's name is enough: manufacturers add others.
func batteryType(model string) string {
	known := batteries()
	for _, word := range append([]string{model}, strings.Fields(model)...) {
		if kind := known[strings.ToUpper(strings.Trim(word, "(),"))]; kind != "" {
			return kind
		}
	}
	return ""
}
