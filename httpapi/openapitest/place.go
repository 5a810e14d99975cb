package openapitest

import (
	"iter"
	"strings"

	"go.yaml.in/yaml/v3"
)

// place is a node of the document with the JSON pointer to it. The zero place is none, and so is
// all that is got from it.
type place struct {
	root    *yaml.Node
	node    *yaml.Node
	pointer string
}

var escapePointer = strings.NewReplacer("~", "~0", "/", "~1")

// get follows keys, and references on the way and at the end.
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

// entries are the members of an object in the order in which they are written, each where its
// reference leads.
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

// items are the members of an array, each where its reference leads.
func (p place) items() []place {
	var items []place
	if p.node != nil && p.node.Kind == yaml.SequenceNode {
		for _, child := range p.node.Content {
			items = append(items, place{root: p.root, node: child}.followed())
		}
	}
	return items
}

// followed is where p's reference leads; p itself when it is none.
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

// text is the value of a scalar; "" of anything else.
func (p place) text() string {
	if p.node == nil {
		return ""
	}
	return p.node.Value
}

// texts are the values of an array's scalars, or of one scalar.
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

// value is what stands there, as JSON.
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

// examples are those of a schema, a media type, a parameter or a header field.
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
