package openapi

import (
	"iter"
	"strings"

	"go.yaml.in/yaml/v3"
)

// place is a node of the document with its JSON pointer. The zero place does not exist, nor does
// anything below it.
type place struct {
	root    *yaml.Node
	node    *yaml.Node
	pointer string
}

var escapePointer = strings.NewReplacer("~", "~0", "/", "~1")

// get descends by keys and follows references.
func (p place) get(keys ...string) place {
	for _, key := range keys {
		found := place{}
		for name, child := range p.entries() {
			if name == key {
				found = child
			}
		}
		p = found
	}
	return p
}

// entries returns the members of an object in the order of the document, with references followed.
func (p place) entries() iter.Seq2[string, place] {
	return func(yield func(string, place) bool) {
		if p.node == nil || p.node.Kind != yaml.MappingNode {
			return
		}
		for i := 0; i+1 < len(p.node.Content); i += 2 {
			key := p.node.Content[i].Value
			child := place{
				p.root,
				p.node.Content[i+1],
				p.pointer + "/" + escapePointer.Replace(key),
			}
			if !yield(key, child.followed()) {
				return
			}
		}
	}
}

// items returns the members of an array, with references followed.
func (p place) items() []place {
	var items []place
	if p.node != nil && p.node.Kind == yaml.SequenceNode {
		for _, child := range p.node.Content {
			items = append(items, place{root: p.root, node: child}.followed())
		}
	}
	return items
}

// followed returns the target of a reference, or p itself if p is not a reference.
func (p place) followed() place {
	if p.node.Kind != yaml.MappingNode {
		return p
	}
	for i := 0; i+1 < len(p.node.Content); i += 2 {
		pointer, local := strings.CutPrefix(p.node.Content[i+1].Value, "#/")
		if p.node.Content[i].Value == "$ref" && local {
			return place{root: p.root, node: p.root}.get(strings.Split(pointer, "/")...)
		}
	}
	return p
}

func (p place) exists() bool { return p.node != nil }

// text returns the value of a scalar, "" for anything else.
func (p place) text() string {
	if p.node == nil {
		return ""
	}
	return p.node.Value
}

// texts returns the values of an array's scalars, or of one scalar.
func (p place) texts() []string {
	if p.node != nil && p.node.Kind == yaml.ScalarNode {
		return []string{p.node.Value}
	}
	var texts []string
	for _, item := range p.items() {
		texts = append(texts, item.text())
	}
	return texts
}

// value returns the node as JSON.
func (p place) value() (any, error) {
	var value any
	if p.node == nil {
		return nil, nil
	}
	if err := p.node.Decode(&value); err != nil {
		return nil, err
	}
	return asJSON(value)
}

// examples returns the examples of a schema, media type, parameter or header field.
func (p place) examples() []place {
	var examples []place
	if one := p.get("example"); one.exists() {
		examples = append(examples, one)
	}
	examples = append(examples, p.get("examples").items()...)
	for _, named := range p.get("examples").entries() {
		examples = append(examples, named.get("value"))
	}
	return examples
}
