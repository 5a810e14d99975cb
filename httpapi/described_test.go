package httpapi

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"hubcloud/streams/streamstest"
)

// operation is a method of a path, as openapi.yaml describes it.
type operation struct {
	method, pattern, scope, description string
	// keyless reports that no API key is needed.
	keyless bool
	// query and header are the names of the parameters.
	query, header []string
	// body is the name of the schema of the request body, "" for none, and examples are those of
	// the body and of its schema.
	body         string
	bodyOptional bool
	examples     []any
	answers      map[int]describedAnswer
}

// describedAnswer has the error types and the header fields of an answer.
type describedAnswer struct{ types, headers []string }

func (o *operation) String() string { return o.method + " " + o.pattern }

func (o *operation) statuses() []int { return slices.Sorted(maps.Keys(o.answers)) }

// documents are openapi.yaml and openapi-root.yaml, decoded.
type documents struct {
	operations []*operation
	roots      []part
}

// part is a part of a document, with the document it is of.
type part struct{ root, of any }

// get descends by keys and follows references. What does not exist is nil.
func (p part) get(keys ...string) part {
	for _, key := range keys {
		object, _ := p.of.(map[string]any)
		p.of = object[key]
		if object, ok := p.of.(map[string]any); ok {
			if to, ok := object["$ref"].(string); ok {
				p = part{p.root, p.root}.get(strings.Split(strings.TrimPrefix(to, "#/"), "/")...)
			}
		}
	}
	return p
}

func (p part) text() string { return fmt.Sprint(p.of) }

// keys returns the names of an object's members.
func (p part) keys() []string {
	object, _ := p.of.(map[string]any)
	return slices.Sorted(maps.Keys(object))
}

// items returns the elements of an array, with references followed.
func (p part) items() (items []part) {
	list, _ := p.of.([]any)
	for _, item := range list {
		items = append(items, part{p.root, map[string]any{"it": item}}.get("it"))
	}
	return items
}

func (p part) texts() (texts []string) {
	for _, item := range p.items() {
		texts = append(texts, item.text())
	}
	return texts
}

// examples returns the examples of a media type or a schema.
func (p part) examples() (all []any) {
	if one := p.get("example"); one.of != nil {
		all = append(all, one.of)
	}
	for _, item := range p.get("examples").items() {
		all = append(all, item.of)
	}
	for _, name := range p.get("examples").keys() {
		all = append(all, p.get("examples", name, "value").of)
	}
	return all
}

// described returns openapi.yaml and openapi-root.yaml.
func described(t testing.TB) (d documents) {
	t.Helper()
	for _, text := range []string{openAPI, openAPIRoot} {
		var tree map[string]any
		streamstest.Must(t, yaml.Unmarshal([]byte(text), &tree))
		root := part{tree, tree}
		d.roots = append(d.roots, root)
		prefix := ""
		for _, server := range root.get("servers").items() {
			prefix = strings.TrimSuffix(server.get("url").text(), "/")
		}
		for _, path := range root.get("paths").keys() {
			item := root.get("paths", path)
			for _, method := range item.keys() {
				if method == "parameters" {
					continue
				}
				o := operationOf(t, root, item, item.get(method))
				o.method, o.pattern = strings.ToUpper(method), prefix+path
				d.operations = append(d.operations, o)
			}
		}
	}
	return d
}

func operationOf(t testing.TB, root, item, op part) *operation {
	t.Helper()
	o := &operation{
		description: op.get("description").text(), answers: map[int]describedAnswer{},
	}
	security := op.get("security")
	if security.of == nil {
		security = root.get("security")
	}
	o.keyless = len(security.items()) == 0
	for _, requirement := range security.items() {
		for _, scope := range requirement.get("apiKey").texts() {
			o.scope = scope
		}
	}
	for _, p := range append(item.get("parameters").items(), op.get("parameters").items()...) {
		switch p.get("in").text() {
		case "query":
			o.query = append(o.query, p.get("name").text())
		case "header":
			o.header = append(o.header, p.get("name").text())
		}
	}
	if body := op.get("requestBody"); body.of != nil {
		o.bodyOptional = body.get("required").text() != "true"
		content := body.get("content", "application/json")
		schema, _ := content.of.(map[string]any)["schema"].(map[string]any)
		o.body = strings.TrimPrefix(fmt.Sprint(schema["$ref"]), "#/components/schemas/")
		o.examples = append(content.examples(), content.get("schema").examples()...)
	}
	for _, status := range op.get("responses").keys() {
		code, err := strconv.Atoi(status)
		streamstest.Must(t, err)
		var answer describedAnswer
		response := op.get("responses", status)
		for _, name := range response.get("headers").keys() {
			answer.headers = append(answer.headers, http.CanonicalHeaderKey(name))
		}
		for _, mediaType := range response.get("content").keys() {
			answer.types = response.get("content", mediaType, "x-error-types").texts()
		}
		o.answers[code] = answer
	}
	return o
}

// schema returns a component schema, of the first document that has it.
func (d documents) schema(name string) (schema part) {
	for _, root := range d.roots {
		if schema = root.get("components", "schemas", name); schema.of != nil {
			break
		}
	}
	return schema
}
