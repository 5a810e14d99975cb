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

// entry is a link of a list: to a heading of the page, by its ID, or to another page, by its address.
type entry struct{ ID, Text string }

// sections are the kinds of pages, whose addresses are relative to any of them.
var sections = []entry{
	{"../docs/", "Guides"}, {"../v1/reference", "API reference"}, {"../link/", "Hub protocol"},
	{"../portal/", "Portal"},
}

// page is what the templates of pages show.
type page struct {
	Title, Section string
	// Files is the folder of the page's files, relative to the page, and Markdown the page as Markdown.
	// Script runs before the page is shown.
	Files, Markdown, Script string
	Headings                []entry
	Article                 template.HTML
	// Guides are all guides, and Schemas the names of the hub protocol's schemas, without extension.
	Guides  []entry
	Schemas []string
}

// Sections are the links of the page's bar.
func (page) Sections() []entry { return sections }

var layout = template.Must(template.ParseFS(own, "pages/*.html"))

// execute returns the page that a template makes. It panics on an error, which means that the binary
// is broken.
func execute(name string, view any) []byte {
	var out bytes.Buffer
	if err := layout.ExecuteTemplate(&out, name, view); err != nil {
		panic(fmt.Sprintf("docpages: %s: %v", name, err))
	}
	return out.Bytes()
}

// anchor matches the anchor and the ID of a rule in the rendered page, schemas a link to the folder
// of the schemas, and title a heading.
var (
	anchor  = regexp.MustCompile(`<a id="(R-[a-z]+-[0-9]+)"></a><strong>R-[a-z]+-[0-9]+</strong>`)
	schemas = regexp.MustCompile(`href="schemas/"`)
	title   = regexp.MustCompile(`<(h[23]) id="([^"]+)">(.*?)</h[23]>`)
)

// markdown renders Markdown of the binary, so that HTML in it, the anchors of rules, stays as it is.
var markdown = goldmark.New(
	goldmark.WithExtensions(extension.Table),
	goldmark.WithParserOptions(parser.WithAutoHeadingID()),
	goldmark.WithRendererOptions(html.WithUnsafe()),
)

// labels matches a heading and a table.
var labels = regexp.MustCompile(`<h[1-6] id="([^"]+)">|<table>`)

// article renders Markdown and returns its sections too. Headings are links to themselves and the names
// of the tables after them. Tables and code scroll on their own, not the page.
func article(source []byte) (template.HTML, []entry) {
	document := markdown.Parser().Parse(text.NewReader(source))
	var out bytes.Buffer
	if err := markdown.Renderer().Render(&out, source, document); err != nil {
		panic(fmt.Sprintf("docpages: Markdown: %v", err)) // a buffer takes everything
	}
	body := title.ReplaceAllString(out.String(), `<$1 id="$2"><a class="anchor" href="#$2">$3</a></$1>`)
	name := `aria-label="Table"`
	body = labels.ReplaceAllStringFunc(body, func(found string) string {
		if found != "<table>" {
			name = `aria-labelledby="` + labels.FindStringSubmatch(found)[1] + `"`
			return found
		}
		return `<div class="scroll" tabindex="0" role="group" ` + name + `><table ` + name + `>`
	})
	body = strings.NewReplacer(
		"</table>", "</table></div>", "<th>", `<th scope="col">`,
		"<pre>", `<div class="code"><pre tabindex="0">`, "</pre>", "</pre></div>",
	).Replace(body)
	return template.HTML(body), headings(document, source)
}

// renderLink returns the page for the files of the hub protocol.
func renderLink(files fs.FS) []byte {
	p := page{Title: "The hub protocol", Section: "Hub protocol", Markdown: "README.md"}
	p.Article, p.Headings = article(read(fs.ReadFile(files, p.Markdown)))
	// A rule's ID is a link to itself.
	body := anchor.ReplaceAllString(string(p.Article), `<a class="rule" id="$1" href="#$1">$1</a>`)
	p.Article = template.HTML(schemas.ReplaceAllString(body, `href="#schemas"`))
	names, err := fs.Glob(files, "schemas/*.json")
	if err != nil {
		panic(fmt.Sprintf("docpages: schemas of the hub protocol: %v", err))
	}
	for _, name := range names {
		p.Schemas = append(p.Schemas, strings.TrimSuffix(path.Base(name), ".json"))
	}
	return execute("link.html", p)
}

// headings returns the sections of a document.
func headings(document ast.Node, source []byte) (all []entry) {
	for node := document.FirstChild(); node != nil; node = node.NextSibling() {
		h, ok := node.(*ast.Heading)
		if !ok || h.Level != 2 {
			continue
		}
		id, _ := h.AttributeString("id")
		bytes, _ := id.([]byte)
		all = append(all, entry{string(bytes), plain(h, source)})
	}
	return all
}

// plain returns the text within a node.
func plain(node ast.Node, source []byte) string {
	if t, ok := node.(*ast.Text); ok {
		return string(t.Segment.Value(source))
	}
	var out strings.Builder
	for child := node.FirstChild(); child != nil; child = child.NextSibling() {
		out.WriteString(plain(child, source))
	}
	return out.String()
}
