package openapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Document is one or several parsed OpenAPI documents with their compiled schemas. It is safe for
// concurrent use.
type Document struct {
	// Operations is in the order of the documents.
	Operations []*Operation
	// Examples holds all examples of the documents.
	Examples []Example

	root     place
	schemas  schemas
	unrouted map[int]*answer // what paths and methods answer that are not described
}

// Operation is a method of a path.
type Operation struct {
	Method string
	// Pattern is the whole path, with parameters as {name}.
	Pattern string

	answers map[int]*answer
}

// String returns the method and the pattern.
func (o *Operation) String() string { return o.Method + " " + o.Pattern }

// Example is an example of a schema.
type Example struct {
	Pointer string
	Value   any
	schema  schema
}

// Check validates the example.
func (e Example) Check() error { return e.schema(e.Value) }

// schema validates a value: JSON decoded into maps, slices and json.Number. Its error has a line
// for each violation.
type schema func(value any) error

// Texts returns openapi.yaml and openapi-root.yaml as they are in the tree. It must be called in a
// test of a folder of test/.
func Texts() (api, root string, err error) {
	text, err := os.ReadFile("../../httpapi/openapi.yaml")
	if err != nil {
		return "", "", err
	}
	rootText, err := os.ReadFile("../../httpapi/openapi-root.yaml")
	return string(text), string(rootText), err
}

// Read parses the documents of the tree, as Texts returns them.
func Read() (*Document, error) {
	api, root, err := Texts()
	if err != nil {
		return nil, err
	}
	return Parse(api, root)
}

// Parse parses the documents of a service, which describe it together, and compiles their schemas.
// The first document describes the answers to requests that have no operation. The components that
// several documents have must be the same in all.
func Parse(texts ...string) (*Document, error) {
	all := &Document{}
	for i, text := range texts {
		d, err := parse(text)
		if err != nil {
			return nil, err
		}
		if i == 0 {
			all = d
			if err := all.readUnrouted(); err != nil {
				return nil, err
			}
			continue
		}
		if err := sameComponents(all.root, d.root); err != nil {
			return nil, err
		}
		all.Operations = append(all.Operations, d.Operations...)
		all.Examples = append(all.Examples, d.Examples...)
	}
	return all, nil
}

// sameComponents compares the components that two documents have.
func sameComponents(one, other place) error {
	for kind, components := range other.get("components").entries() {
		for name, component := range components.entries() {
			twin := one.get("components", kind, name)
			if !twin.exists() {
				continue
			}
			a, err := twin.value()
			if err != nil {
				return err
			}
			b, err := component.value()
			if err != nil {
				return err
			}
			if !reflect.DeepEqual(a, b) {
				return fmt.Errorf("%s: is not the same in all documents", component.pointer)
			}
		}
	}
	return nil
}

func parse(text string) (*Document, error) {
	var file yaml.Node
	if err := yaml.Unmarshal([]byte(text), &file); err != nil {
		return nil, err
	}
	var tree any
	if err := file.Decode(&tree); err != nil {
		return nil, err
	}
	closeObjects(tree)
	tree, err := asJSON(tree)
	if err != nil {
		return nil, err
	}
	applyExtensions(tree)
	d := &Document{root: place{root: file.Content[0], node: file.Content[0]}}
	if d.schemas, err = newSchemas(tree); err != nil {
		return nil, err
	}
	if err := d.readOperations(); err != nil {
		return nil, err
	}
	return d, d.readExamples()
}

// closeObjects forbids additional properties in every object schema that lists properties and does
// not set additionalProperties itself.
func closeObjects(tree any) {
	switch t := tree.(type) {
	case map[string]any:
		_, lists := t["properties"].(map[string]any)
		_, says := t["additionalProperties"]
		if lists && !says && isObject(t["type"]) {
			t["additionalProperties"] = false
		}
		for _, child := range t {
			closeObjects(child)
		}
	case []any:
		for _, child := range t {
			closeObjects(child)
		}
	}
}

// isObject reports whether a schema's `type` includes objects.
func isObject(types any) bool {
	if several, ok := types.([]any); ok {
		for _, one := range several {
			if one == "object" {
				return true
			}
		}
	}
	return types == "object"
}

// asJSON converts a YAML value to a JSON value.
func asJSON(v any) (any, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return decode(text)
}

// decode decodes one JSON value, with numbers as json.Number.
func decode(text []byte) (any, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one JSON value")
	}
	return value, nil
}

func (d *Document) readOperations() error {
	prefix := d.server()
	for path, item := range d.root.get("paths").entries() {
		for method, op := range item.entries() {
			if method == "parameters" {
				continue
			}
			o := &Operation{Method: strings.ToUpper(method), Pattern: prefix + path}
			var err error
			if o.answers, err = d.answers(op.get("responses")); err != nil {
				return fmt.Errorf("%v: %w", o, err)
			}
			d.Operations = append(d.Operations, o)
		}
	}
	return nil
}

// server returns the path prefix of the document.
func (d *Document) server() string {
	for _, server := range d.root.get("servers").items() {
		return strings.TrimSuffix(server.get("url").text(), "/")
	}
	return ""
}

// nameOf returns the name of a schema among the components, "" for any other schema.
func nameOf(schema place) string {
	name, ok := strings.CutPrefix(schema.pointer, "/components/schemas/")
	if !ok {
		return ""
	}
	return name
}

// compile compiles the schema at a place.
func (d *Document) compile(p place) (schema, error) { return d.schemas.compile(p.pointer) }

// readExamples collects the examples of schemas, media types, parameters and header fields.
func (d *Document) readExamples() error {
	var failed error
	d.everyObject(d.root, func(p place) {
		schema := p
		if s := p.get("schema"); s.exists() {
			schema = s
		}
		values := p.examples()
		if len(values) == 0 {
			return
		}
		compiled, err := d.compile(schema)
		if err != nil {
			failed = fmt.Errorf("%s: %w", p.pointer, err)
			return
		}
		for i, v := range values {
			value, err := v.value()
			if err != nil {
				failed = fmt.Errorf("%s: %w", p.pointer, err)
			}
			d.Examples = append(
				d.Examples, Example{p.pointer + " (" + strconv.Itoa(i) + ")", value, compiled},
			)
		}
	})
	return failed
}

// everyObject visits each object of the document where it is written, but not those inside
// examples.
func (d *Document) everyObject(p place, visit func(place)) {
	switch p.node.Kind {
	case yaml.MappingNode:
		visit(p)
		for i := 0; i+1 < len(p.node.Content); i += 2 {
			if key := p.node.Content[i].Value; key != "example" && key != "examples" {
				d.everyObject(
					place{
						p.root,
						p.node.Content[i+1],
						p.pointer + "/" + escapePointer.Replace(key),
					},
					visit,
				)
			}
		}
	case yaml.SequenceNode:
		for i, child := range p.node.Content {
			d.everyObject(place{p.root, child, p.pointer + "/" + strconv.Itoa(i)}, visit)
		}
	}
}
