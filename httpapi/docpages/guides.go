package docpages

import (
	"fmt"
	"io/fs"
	"regexp"
	"strings"
)

var (
	// eventStream matches how OpenAPI 3.1 describes the messages of an event stream, and outside a
	// link to a file that is not among the guides; link matches any.
	eventStream = regexp.MustCompile(
		`(?m)^( +)schema:\n +type: string\n +description: A sequence of messages[^\n]*\n +x-message:`,
	)
	link    = regexp.MustCompile(`\[([^\]]+)\]\([^)]*\)`)
	outside = regexp.MustCompile(`\[([^\]]+)\]\(\.\./[^)]*\)`)
)

// OpenAPI32 returns an OpenAPI 3.1 document as OpenAPI 3.2, which describes the messages of event
// streams with itemSchema.
func OpenAPI32(document string) string {
	_, rest, _ := strings.Cut(document, "\n") // the version is the first line
	return "openapi: 3.2.0\n" + eventStream.ReplaceAllString(rest, "${1}itemSchema:")
}

// Guides returns the guides in a folder as Markdown, below docs/, and llms.txt, which lists them
// and the other documents of the service.
func Guides(folder fs.FS) Files {
	f := Files{files: map[string]file{}, shared: true}
	var list strings.Builder
	list.WriteString("# Device Hub Cloud\n\n> A cloud service for organizations that manage buildings: " +
		"the hubs in them, the devices joined to each hub, commands to devices, and ordered event logs. " +
		"JSON over HTTPS with an API key, Server-Sent Events for events.\n\n## Guides\n\n")
	names, err := fs.Glob(folder, "*.md")
	if err != nil {
		panic(fmt.Sprintf("docpages: guides: %v", err)) // a pattern that is constant
	}
	for _, name := range names {
		text := outside.ReplaceAllString(string(read(fs.ReadFile(folder, name))), "$1")
		f.add(name, contentTypeOf(name), []byte(text))
		if name == "README.md" {
			continue // a list of the others
		}
		title, rest, _ := strings.Cut(strings.TrimPrefix(text, "# "), "\n")
		about, _, _ := strings.Cut(strings.TrimSpace(rest), "\n\n")
		about = link.ReplaceAllString(about, "$1")
		fmt.Fprintf(&list, "- [%s](/docs/%s): %s\n", title, name, strings.Join(strings.Fields(about), " "))
	}
	list.WriteString("\n## Reference\n\n" +
		"- [OpenAPI 3.1](/v1/openapi.yaml): the API\n" +
		"- [OpenAPI 3.2](/v1/openapi-3.2.yaml): the same, with the messages of event streams\n" +
		"- [Routes outside /v1](/v1/openapi-root.yaml): enrolment of hubs, health\n" +
		"- [Hub protocol](/link/README.md): how hubs talk to the service\n")
	f.add("llms.txt", contentTypeOf("llms.txt"), []byte(list.String()))
	return f
}
