package openapitest

import (
	"slices"
)

// Field is a property of an object schema.
type Field struct {
	Name     string
	Required bool
	// Types are the JSON types that its schema names, sorted; none if the schema has no `type`.
	Types []string
}

// Objects returns the names of the component schemas that list properties, in the order of the
// document.
func (d *Document) Objects() []string {
	var names []string
	for _, root := range d.roots() {
		for name, schema := range root.get("components", "schemas").entries() {
			if schema.get("properties").exists() && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// Object returns the properties of a component schema, in the order of the document. Further names
// select a property, a property of that, and so on.
func (d *Document) Object(name string, properties ...string) []Field {
	schema := d.component(name)
	for _, property := range properties {
		schema = schema.get("properties", property)
	}
	required := schema.get("required").texts()
	var fields []Field
	for name, property := range schema.get("properties").entries() {
		fields = append(
			fields,
			Field{
				name,
				slices.Contains(required, name),
				slices.Sorted(slices.Values(property.get("type").texts())),
			},
		)
	}
	return fields
}

// Enum returns the values that a component schema allows.
func (d *Document) Enum(name string) []string {
	return d.component(name).get("enum").texts()
}

// Scopes returns the description of the scopes of an API key.
func (d *Document) Scopes() string {
	return d.root.get("components", "securitySchemes", "apiKey", "description").text()
}

// roots returns the top of each document.
func (d *Document) roots() []place {
	roots := []place{d.root}
	for _, other := range d.others {
		roots = append(roots, other.root)
	}
	return roots
}

// component returns the component schema with a name, from the first document that has it.
func (d *Document) component(name string) place {
	for _, root := range d.roots() {
		if schema := root.get("components", "schemas", name); schema.exists() {
			return schema
		}
	}
	return place{}
}
