package docpages

import (
	"cmp"
	"fmt"
	"html"
	"html/template"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// referencePage is the page of an OpenAPI document.
type referencePage struct {
	page
	Summary string
	Key     template.HTML
	Tags    []tag
	Errors  []answer
	Schemas []field
}

// tag is a group of operations.
type tag struct {
	Name, ID         string
	Description      template.HTML
	Guide, GuideText string
	Operations       []operation
}

// operation is what the page shows of an operation.
type operation struct {
	ID, Method, Path, Summary, Scope string
	Description                      template.HTML
	Parameters                       []field
	Body                             *body
	Answers, Errors                  []answer
}

// body is a request body: its type and fields, and examples as JSON, of which there is at least one.
type body struct {
	Type     template.HTML
	Fields   []field
	Examples []example
}

type example struct{ Summary, Text string }

// answer is a kind of answer. Those with a name are described once, under it.
type answer struct {
	Status, Name string
	Types        []string
	Description  template.HTML
	// MediaType, Type and Example are of its body, and Message has the fields of a stream's messages.
	MediaType string
	Type      template.HTML
	Example   string
	Headers   []field
	Message   []field
}

// field is a parameter, a header, a schema or a property of one.
type field struct {
	Name, In string
	// Many: a parameter may be given several times.
	Required, Many bool
	Type           template.HTML
	Description    template.HTML
	// Limits are what values must be, Choices all values if they are few, Options all that an input
	// offers, and Hint is an example.
	Limits           string
	Choices, Options []string
	Hint             string
	Fields           []field
}

// Placeholder returns the hint in an empty input.
func (f field) Placeholder() string {
	switch {
	case f.Name == "Idempotency-Key":
		return "a new one for each request"
	case f.Many && f.Hint != "":
		return "such as " + f.Hint + "; several with commas"
	case f.Hint != "":
		return "such as " + f.Hint
	}
	return ""
}

// general are the headers of almost every answer, which the introduction describes.
var general = []string{
	"X-Request-Id", "RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset", "RateLimit-Policy", "Vary",
}

// renderReference returns the page of an OpenAPI document.
func renderReference(document string) []byte {
	d := readDescription(document)
	p := referencePage{
		page: page{
			Title: "API reference", Section: "API reference", Files: "reference/",
			Script: "reference/reference.js",
		},
		Summary: d.Info.Summary, Key: prose(d.Components.SecuritySchemes["apiKey"].Description),
	}
	p.Article = prose(d.Info.Description)
	for _, t := range d.Tags {
		p.Tags = append(p.Tags, tag{
			Name: t.Name, ID: "tag-" + strings.ReplaceAll(strings.ToLower(t.Name), " ", "-"),
			Description: prose(t.Description),
			Guide:       t.ExternalDocs.URL, GuideText: t.ExternalDocs.Description,
		})
	}
	for _, path := range d.Paths {
		item := path.Value
		for _, method := range []struct {
			name string
			op   *operationText
		}{
			{"GET", item.Get}, {"POST", item.Post}, {"PUT", item.Put}, {"PATCH", item.Patch}, {"DELETE", item.Delete},
		} {
			if method.op != nil {
				op := d.operation(method.name, path.Name, method.op, item.Parameters)
				i := slices.IndexFunc(p.Tags, func(t tag) bool { return t.Name == method.op.Tags[0] })
				p.Tags[i].Operations = append(p.Tags[i].Operations, op)
				for _, failure := range op.Errors {
					if !slices.ContainsFunc(p.Errors, func(e answer) bool { return e.Name == failure.Name }) {
						p.Errors = append(p.Errors, failure)
					}
				}
			}
		}
	}
	slices.SortStableFunc(p.Errors, func(a, b answer) int { return cmp.Compare(a.Status, b.Status) })
	for _, named := range d.Components.Schemas {
		if !inlined(named.Value) {
			p.Schemas = append(p.Schemas, d.field(named.Name, named.Value))
		}
	}
	return execute("reference.html", p)
}

// prose renders a description in Markdown.
func prose(text string) template.HTML {
	rendered, _ := article([]byte(text))
	return rendered
}

func (d *description) operation(
	method, path string, text *operationText, common []described,
) operation {
	op := operation{ID: text.OperationID, Method: method, Path: path, Summary: text.Summary}
	for _, needed := range text.Security {
		for _, scopes := range needed {
			op.Scope = strings.Join(scopes, ", ")
		}
	}
	op.Description = prose(strings.TrimPrefix(text.Description, "Scope: `"+op.Scope+"`.\n"))
	for _, parameter := range slices.Concat(common, text.Parameters) {
		op.Parameters = append(op.Parameters, d.parameter(d.resolve(parameter)))
	}
	if content := text.RequestBody.Content; len(content) > 0 {
		media := content[0].Value
		op.Body = &body{Type: d.typeOf(media.Schema), Fields: d.field("", d.schema(media.Schema)).Fields}
		for _, named := range media.Examples {
			op.Body.Examples = append(op.Body.Examples, example{named.Value.Summary, literal(&named.Value.Value)})
		}
		if len(media.Examples) == 0 {
			op.Body.Examples = []example{{"", d.exampleOf(media.Example, media.Schema)}}
		}
	}
	for _, response := range text.Responses {
		answer := d.answer(response.Name, response.Value)
		if response.Name >= "400" {
			op.Errors = append(op.Errors, answer)
		} else {
			op.Answers = append(op.Answers, answer)
		}
	}
	return op
}

func (d *description) parameter(p described) field {
	f := d.field(p.Name, p.Schema)
	f.In, f.Required, f.Description = p.In, p.Required, prose(p.Description)
	f.Many = slices.Contains(d.schema(p.Schema).Type, "array")
	if p.Example.Kind != 0 {
		f.Hint = strings.Trim(literal(&p.Example), `"[]`)
	}
	if f.Options = f.Choices; slices.Contains(d.schema(p.Schema).Type, "boolean") {
		f.Options = []string{"true", "false"}
	}
	return f
}

func (d *description) answer(status string, response described) answer {
	a := answer{Status: status, Name: strings.TrimPrefix(response.Ref, "#/components/responses/")}
	response = d.resolve(response)
	a.Description = prose(response.Description)
	for _, header := range response.Headers {
		if !slices.Contains(general, header.Name) {
			h := d.resolve(header.Value)
			f := d.field(header.Name, h.Schema)
			f.Description = prose(h.Description)
			a.Headers = append(a.Headers, f)
		}
	}
	for _, content := range response.Content {
		media := content.Value
		a.MediaType, a.Type, a.Types = content.Name, d.typeOf(media.Schema), media.Errors
		a.Example = d.exampleOf(media.Example, media.Schema)
		if media.Message != nil {
			a.Message = d.field("", media.Message).Fields
		}
	}
	return a
}

// exampleOf returns an example of a body, or of its schema if it has none itself: JSON, or a text as
// it is.
func (d *description) exampleOf(own yaml.Node, s *schema) string {
	if s = d.schema(s); own.Kind == 0 && len(s.Examples) > 0 {
		own = s.Examples[0]
	}
	switch own.Kind {
	case 0:
		return ""
	case yaml.ScalarNode:
		return own.Value
	}
	return literal(&own)
}

// inlined reports whether the page describes a schema where it is used, rather than once.
func inlined(s *schema) bool {
	return len(s.Properties)+len(s.OneOf)+len(s.AnyOf)+len(s.AllOf) == 0 && s.Items == nil && len(s.Enum) < 6 &&
		len(s.Description) < 160
}

// field returns what the page shows of a schema under a name.
func (d *description) field(name string, s *schema) field {
	f := field{Name: name, Type: d.typeOf(s), Description: prose(s.Description)}
	whole := d.schema(s)
	if s.Ref != "" {
		if !inlined(whole) {
			return f
		}
		f.Description = prose(cmp.Or(s.Description, whole.Description))
	}
	f.Limits = limitsOf(whole)
	for _, value := range whole.Enum {
		f.Choices = append(f.Choices, value.Value)
	}
	for _, part := range slices.Concat([]*schema{whole, whole.Items, whole.ContentSchema}, whole.AnyOf, whole.OneOf) {
		if part == nil || part.Ref != "" {
			continue
		}
		if part == whole.Items && f.Description == "" {
			f.Description = prose(part.Description)
		}
		for _, property := range part.Properties {
			inner := d.field(property.Name, property.Value)
			inner.Required = slices.Contains(part.Required, property.Name)
			f.Fields = append(f.Fields, inner)
		}
	}
	return f
}

// typeOf returns the type of a schema in words, with links to the schemas that have a place of their own.
func (d *description) typeOf(s *schema) template.HTML {
	if s.Ref != "" {
		if whole := d.schema(s); inlined(whole) {
			return d.typeOf(whole)
		}
		name := html.EscapeString(nameOf(s))
		return template.HTML(`<a href="#` + name + `">` + name + `</a>`)
	}
	var kinds []string
	for _, part := range slices.Concat(s.OneOf, s.AnyOf, s.AllOf) {
		if kind := string(d.typeOf(part)); kind != "" && !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
	}
	for _, kind := range s.Type {
		switch {
		case len(kinds) > 0:
		case kind == "array" && s.Items != nil:
			kind = "array of " + string(d.typeOf(s.Items))
		case kind == "string" && s.ContentSchema != nil:
			kind = "JSON of " + string(d.typeOf(s.ContentSchema))
		case kind == "string" && s.Format != "":
			kind = html.EscapeString(s.Format)
		}
		kinds = append(kinds, kind)
	}
	return template.HTML(strings.Join(kinds, " or "))
}

// limitsOf returns in words what values of a schema must be.
func limitsOf(s *schema) string {
	var all []string
	between := func(low, high, unit string) {
		switch {
		case low != "" && high != "":
			all = append(all, strings.TrimSpace(low+" to "+high+" "+unit))
		case low != "" && (low != "1" || unit == ""): // that a text is not empty need not be said
			all = append(all, strings.TrimSpace("at least "+low+" "+unit))
		case high != "":
			all = append(all, strings.TrimSpace("at most "+high+" "+unit))
		}
	}
	between(s.Minimum.Value, s.Maximum.Value, "")
	between(numberOf(s.MinLength), numberOf(s.MaxLength), "characters")
	between(numberOf(s.MinItems), numberOf(s.MaxItems), "items")
	if s.Default.Kind != 0 {
		all = append(all, literal(&s.Default)+" by default")
	}
	return strings.Join(all, ", ")
}

func numberOf(n *int) string {
	if n == nil {
		return ""
	}
	return fmt.Sprint(*n)
}
