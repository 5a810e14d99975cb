package docpages

import (
	"regexp"
	"strings"
	"testing"
)

// The page has each operation of the document with a form that sends it, where nothing is filled in but
// the example of a body, and says what each answers. With all its files it is small: Swagger UI was 584 KB.
func TestReference(t *testing.T) {
	t.Parallel()
	page := get(t, pages["reference"], "").Body.String()
	operations := regexp.MustCompile(`(?m)^ +operationId: (\S+)$`).FindAllStringSubmatch(
		string(mustRead("../openapi.yaml")), -1,
	)
	if len(operations) < 40 {
		t.Fatalf("got the operations %v, want all", operations)
	}
	for _, found := range operations {
		id := found[1]
		_, section, _ := strings.Cut(page, `<details class="operation" id="`+id+`">`)
		section, _, _ = strings.Cut(section, `<details class="operation"`)
		for _, want := range []string{
			`<form class="try needs-script"`, `<h4>Answers</h4>`, `<strong>2`, `href="#error-`,
		} {
			if !strings.Contains(section, want) && !strings.HasPrefix(id, "head") {
				t.Errorf("%s: got %.900q, want %s in it", id, section, want)
			}
		}
	}
	if filled := regexp.MustCompile(`<input[^>]* value=.*`).FindString(page); filled != "" {
		t.Errorf("got the input %s, want it empty", filled)
	}
	_, command, _ := strings.Cut(page, `id="sendCommand"`)
	command, _, _ = strings.Cut(command, "</form>")
	for _, want := range []string{
		`<h3><span class="method POST">POST</span> <code>/hubs/{hub_id}/devices/{device_id}/commands</code>`,
		`Scope <code>hubs:command</code>`,
		`placeholder="a new one for each request"`, `id="sendCommand-hub_id" name="hub_id" data-in="path" required`,
		`<dt><code>value</code> <span class="type"><a href="#CommandValue">CommandValue</a></span> <span class="required">`,
		`&#34;key&#34;: &#34;lock&#34;`, `<a href="#error-HubTimeout">504 hub_timeout</a>`, `<code>Command-Id</code>`,
	} {
		if !strings.Contains(command, want) {
			t.Errorf("sendCommand: got %s, want %s in it", command, want)
		}
	}
	size := 0
	for _, f := range pages["reference"].files {
		size += len(f.gzipped())
	}
	if size > 60_000 {
		t.Errorf("the page and its files are %d bytes, want at most 60,000", size)
	}
}
