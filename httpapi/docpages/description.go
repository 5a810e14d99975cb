package docpages

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

// description is what the reference shows of an OpenAPI document.
type description struct {
	Info  struct{ Summary, Description string }
	Tags  []tagText
	Paths ordered[struct {
		Parameters                    []described
		Get, Put, Post, Patch, Delete *operationText
	}]
	Components struct {
		Parameters, Headers, Responses map[string]described
		Schemas                        ordered[*schema]
		SecuritySchemes                map[string]struct{ Description string } `yaml:"securitySchemes"`
	}
}

type tagText struct {
	Name, Description string
	ExternalDocs      struct{ URL, Description string } `yaml:"externalDocs"`
}

type operationText struct {
	OperationID          string `yaml:"operationId"`
	Tags                 []string
	Summary, Description string
	Security             []map[string][]string
	Parameters           []described
	RequestBody          described `yaml:"requestBody"`
	Responses            ordered[described]
}

// described is a parameter, a header, a request body or a response, or a reference to one.
type described struct {
	Ref         string `yaml:"$ref"`
	Name, In    string
	Required    bool
	Description string
	Schema      *schema
	Example     yaml.Node
	Headers     ordered[described]
	Content     ordered[struct {
		Schema   *schema
		Message  *schema  `yaml:"x-message"`
		Errors   []string `yaml:"x-error-types"`
		Example  yaml.Node
		Examples ordered[struct {
			Summary string
			Value   yaml.Node
		}]
	}]
}

// schema is a JSON Schema, or a reference to one with its own description.
type schema struct {
	Ref              string `yaml:"$ref"`
	Type             names
	Description      string
	Format, Pattern  string
	Enum             []yaml.Node
	Default, Const   yaml.Node
	Examples         []yaml.Node
	Required         []string
	Properties       ordered[*schema]
	Items            *schema
	OneOf            []*schema `yaml:"oneOf"`
	AnyOf            []*schema `yaml:"anyOf"`
	AllOf            []*schema `yaml:"allOf"`
	ContentSchema    *schema   `yaml:"contentSchema"`
	Minimum, Maximum yaml.Node
	MinLength        *int `yaml:"minLength"`
	MaxLength        *int `yaml:"maxLength"`
	MinItems         *int `yaml:"minItems"`
	MaxItems         *int `yaml:"maxItems"`
}

// names are one or several texts.
type names []string

func (n *names) UnmarshalYAML(node *yaml.Node) error {
	if node.Kind == yaml.ScalarNode {
		*n = names{node.Value}
		return nil
	}
	return node.Decode((*[]string)(n))
}

// ordered is a mapping in the order of the document.
type ordered[T any] []named[T]

type named[T any] struct {
	Name  string
	Value T
}

func (o *ordered[T]) UnmarshalYAML(node *yaml.Node) error {
	if node.Kind != yaml.MappingNode {
		return fmt.Errorf("line %d: must be a mapping", node.Line)
	}
	for i := 0; i < len(node.Content); i += 2 {
		entry := named[T]{Name: node.Content[i].Value}
		if err := node.Content[i+1].Decode(&entry.Value); err != nil {
			return err
		}
		*o = append(*o, entry)
	}
	return nil
}

// get returns the value of a name, or its type's zero value.
func (o ordered[T]) get(name string) (value T) {
	for _, entry := range o {
		if entry.Name == name {
			return entry.Value
		}
	}
	return value
}

// readDescription reads a document. It panics on an error, which means that the binary is broken.
func readDescription(document string) *description {
	var d description
	if err := yaml.Unmarshal([]byte(document), &d); err != nil {
		panic(fmt.Sprintf("docpages: openapi.yaml: %v", err))
	}
	return &d
}

// resolve returns what a reference to a component names, or the value itself.
func (d *description) resolve(value described) described {
	path, ok := strings.CutPrefix(value.Ref, "#/components/")
	if !ok {
		return value
	}
	kind, name, _ := strings.Cut(path, "/")
	found, ok := map[string]map[string]described{
		"parameters": d.Components.Parameters, "headers": d.Components.Headers,
		"responses": d.Components.Responses,
	}[kind][name]
	if !ok {
		panic("docpages: openapi.yaml has no " + value.Ref)
	}
	return found
}

// schema returns the schema that a reference names, or the schema itself.
func (d *description) schema(s *schema) *schema {
	for s != nil && s.Ref != "" {
		found := d.Components.Schemas.get(nameOf(s))
		if found == nil {
			panic("docpages: openapi.yaml has no " + s.Ref)
		}
		s = found
	}
	return s
}

// nameOf returns the name of the schema that a reference names.
func nameOf(s *schema) string { return strings.TrimPrefix(s.Ref, "#/components/schemas/") }

// literal returns a value as JSON in the order of the document. Objects and lists have one entry a
// line if they would not fit in one.
func literal(node *yaml.Node) string {
	var compact, out bytes.Buffer
	writeJSON(&compact, node)
	if compact.Len() <= 70 || json.Indent(&out, compact.Bytes(), "", "  ") != nil {
		return compact.String()
	}
	return out.String()
}

func writeJSON(out *bytes.Buffer, node *yaml.Node) {
	quote := func(text string) {
		encoder := json.NewEncoder(out)
		encoder.SetEscapeHTML(false)
		_ = encoder.Encode(text) // a text
		out.Truncate(out.Len() - 1)
	}
	switch node.Kind {
	case yaml.MappingNode:
		out.WriteByte('{')
		for i := 0; i < len(node.Content); i += 2 {
			if i > 0 {
				out.WriteByte(',')
			}
			quote(node.Content[i].Value)
			out.WriteByte(':')
			writeJSON(out, node.Content[i+1])
		}
		out.WriteByte('}')
	case yaml.SequenceNode:
		out.WriteByte('[')
		for i, item := range node.Content {
			if i > 0 {
				out.WriteByte(',')
			}
			writeJSON(out, item)
		}
		out.WriteByte(']')
	default:
		if node.Tag == "!!str" || node.Tag == "!!timestamp" {
			quote(node.Value)
		} else {
			out.WriteString(node.Value)
		}
	}
}
