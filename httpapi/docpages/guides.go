package docpages

import (
	"fmt"
	"io/fs"
	"regexp"
	"strings"
)

var (
	// eventStream matches how OpenAPI 3.1 describes the messages of an event stream. guide matches a
	// row of the list of guides, link a link, outside one to a file that is not served, and toPage one
	// to a guide.
	eventStream = regexp.MustCompile(
		`(?m)^( +)schema:\n +type: string\n +description: A sequence of messages[^\n]*\n +x-message:`,
	)
	link    = regexp.MustCompile(`\[([^\]]+)\]\([^)]*\)`)
	guide   = regexp.MustCompile(`(?m)^\| \[[^\]]+\]\(([a-z-]+\.md)\)`)
	outside = regexp.MustCompile(`\[([^\]]+)\]\((\.\./(client|\.\.)/[^)]*)\)`)
	toPage  = regexp.MustCompile(`\]\(([a-z-]+)\.md(#[^)]*)?\)`)
)

// elsewhere replaces links of the repository with those of the service, where it has the file.
var elsewhere = strings.NewReplacer(
	"](../openapi.yaml)", "](../v1/openapi.yaml)", "](../../hubbridge/protocol/README.md", "](../link/",
)

// OpenAPI32 returns an OpenAPI 3.1 document as OpenAPI 3.2, which describes the messages of event
// streams with itemSchema.
func OpenAPI32(document string) string {
	_, rest, _ := strings.Cut(document, "\n") // the version is the first line
	return "openapi: 3.2.0\n" + eventStream.ReplaceAllString(rest, "${1}itemSchema:")
}

// Guides returns the guides in a folder, below docs/: "first-call.md" as Markdown, and "first-call" as
// a page. README.md is the first page. llms.txt lists the guides and the other documents of the service.
func Guides(folder fs.FS, look Look) Files {
	f := Files{files: map[string]file{}, policy: textPolicy, shared: true}
	f.addLook(look)
	var list strings.Builder
	list.WriteString("# Device Hub Cloud\n\n> A cloud service for organizations that manage buildings: " +
		"the hubs in them, the devices joined to each hub, commands to devices, and ordered event logs. " +
		"JSON over HTTPS with an API key, Server-Sent Events for events.\n\n## Guides\n\n")
	texts := map[string]string{}
	all := []entry{{ID: "./"}}
	read := func(name string) string {
		text := elsewhere.Replace(string(read(fs.ReadFile(folder, name))))
		texts[name] = outside.ReplaceAllString(text, "$1")
		f.add(name, contentTypeOf(name), []byte(texts[name]))
		return texts[name]
	}
	index := read("README.md")
	all[0].Text = titleOf(index)
	for _, row := range guide.FindAllStringSubmatch(index, -1) { // in the order of the list
		name := row[1]
		text := read(name)
		all = append(all, entry{strings.TrimSuffix(name, ".md"), titleOf(text)})
		_, rest, _ := strings.Cut(text, "\n")
		about, _, _ := strings.Cut(strings.TrimSpace(rest), "\n\n")
		about = link.ReplaceAllString(about, "$1")
		fmt.Fprintf(
			&list, "- [%s](/docs/%s): %s\n", titleOf(text), name, strings.Join(strings.Fields(about), " "),
		)
	}
	for name, text := range texts {
		p := page{Title: titleOf(text), Section: "Guides", Markdown: name, Guides: all}
		p.Article, p.Headings = article([]byte(toPage.ReplaceAllString(text, "](${1}${2})")))
		address := strings.TrimSuffix(strings.TrimSuffix(name, ".md"), "README")
		f.add(address, contentTypeOf(".html"), execute("guide.html", p))
	}
	list.WriteString("\n## Reference\n\n" +
		"- [OpenAPI 3.1](/v1/openapi.yaml): the API\n" +
		"- [OpenAPI 3.2](/v1/openapi-3.2.yaml): the same, with the messages of event streams\n" +
		"- [Routes outside /v1](/v1/openapi-root.yaml): enrolment of hubs, health\n" +
		"- [Hub protocol](/link/README.md): how hubs talk to the service\n")
	f.add("llms.txt", contentTypeOf("llms.txt"), []byte(list.String()))
	return f
}

// titleOf returns the title of a guide, its first line.
func titleOf(text string) string {
	first, _, _ := strings.Cut(text, "\n")
	return strings.TrimPrefix(first, "# ")
}
