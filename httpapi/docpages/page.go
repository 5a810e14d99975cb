package docpages

import (
	"bytes"
	"fmt"
	"html/template"
	"io/fs"
	"path"
	"regexp"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"
)

// heading is an entry of the table of contents.
type heading struct{ ID, Text string }

// content is what the page's template shows.
type content struct {
	Headings []heading
	Article  template.HTML
	// Schemas are the names of the schemas, without extension.
	Schemas []string
}

// anchor matches the anchor and the ID of a rule in the rendered page, and schemas a link to the
// folder of the schemas.
var (
	anchor  = regexp.MustCompile(`<a id="(R-[a-z]+-[0-9]+)"></a><strong>R-[a-z]+-[0-9]+</strong>`)
	schemas = regexp.MustCompile(`href="schemas/"`)
)

// render returns the page for the files of the protocol. It panics on an error, which means that
// the binary is broken.
func render(files fs.FS) []byte {
	source := read(fs.ReadFile(files, "README.md"))
	// The page is ours, so its HTML, the anchors of rules, is rendered as it is.
	markdown := goldmark.New(
		goldmark.WithExtensions(extension.Table),
		goldmark.WithParserOptions(parser.WithAutoHeadingID()),
		goldmark.WithRendererOptions(html.WithUnsafe()),
	)
	document := markdown.Parser().Parse(text.NewReader(source))
	c := content{Headings: headings(document, source)}
	var article bytes.Buffer
	if err := markdown.Renderer().Render(&article, source, document); err != nil {
		panic(fmt.Sprintf("docpages: README.md of the hub protocol: %v", err))
	}
	// A rule's ID is a link to itself. Tables scroll on their own, not the page.
	body := anchor.ReplaceAllString(article.String(), `<a class="rule" id="$1" href="#$1">$1</a>`)
	body = schemas.ReplaceAllString(body, `href="#schemas"`)
	body = strings.NewReplacer(
		"<table>", `<div class="scroll" tabindex="0" role="group" aria-label="Table"><table>`,
		"</table>", "</table></div>",
		"<pre>", `<pre tabindex="0">`,
	).Replace(body)
	c.Article = template.HTML(body)
	names, err := fs.Glob(files, "schemas/*.json")
	if err != nil {
		panic(fmt.Sprintf("docpages: schemas of the hub protocol: %v", err))
	}
	for _, name := range names {
		c.Schemas = append(c.Schemas, strings.TrimSuffix(path.Base(name), ".json"))
	}
	var page bytes.Buffer
	layout := template.Must(template.ParseFS(own, "link/page.html"))
	if err := layout.Execute(&page, c); err != nil {
		panic(fmt.Sprintf("docpages: page.html: %v", err))
	}
	return page.Bytes()
}

// headings returns the sections of a document.
func headings(document ast.Node, source []byte) (all []heading) {
	for node := document.FirstChild(); node != nil; node = node.NextSibling() {
		h, ok := node.(*ast.Heading)
		if !ok || h.Level != 2 {
			continue
		}
		id, _ := h.AttributeString("id")
		bytes, _ := id.([]byte)
		var title strings.Builder
		for child := h.FirstChild(); child != nil; child = child.NextSibling() {
			if t, ok := child.(*ast.Text); ok {
				title.Write(t.Segment.Value(source))
			}
		}
		all = append(all, heading{ID: string(bytes), Text: title.String()})
	}
	return all
}
