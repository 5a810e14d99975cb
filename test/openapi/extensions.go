package openapi

import (
	"maps"
	"slices"
)

// applyExtensions adds to a document's schemas, as JSON Schema, what the document says in other
// terms because generators of clients do not understand JSON Schema's `if` and `then`:
//
//   - `discriminator` of a `oneOf`: the value of the named property selects the schema by
//     `mapping`, whose key `other` is for all values that are not its keys. The `oneOf` says the
//     same, but its violations name every alternative.
//   - `x-values-by-key`: the form of the listed properties follows from the property `key`, by
//     `x-values` of the component ChannelKey.
func applyExtensions(tree any) {
	root, _ := tree.(map[string]any)
	components, _ := root["components"].(map[string]any)
	schemas, _ := components["schemas"].(map[string]any)
	channelKey, _ := schemas["ChannelKey"].(map[string]any)
	forms, _ := channelKey["x-values"].([]any)
	for _, schema := range schemas {
		if s, ok := schema.(map[string]any); ok {
			selectByDiscriminator(s)
			constrainValues(s, forms)
		}
	}
}

// selectByDiscriminator replaces the oneOf of a schema with a discriminator.
func selectByDiscriminator(schema map[string]any) {
	discriminator, ok := schema["discriminator"].(map[string]any)
	if !ok {
		return
	}
	name, _ := discriminator["propertyName"].(string)
	mapping, _ := discriminator["mapping"].(map[string]any)
	known := slices.Sorted(maps.Keys(mapping))
	known = slices.DeleteFunc(known, func(value string) bool { return value == "other" })
	var all, listed []any
	for _, value := range known {
		listed = append(listed, value)
		all = append(all, map[string]any{
			"if":   propertyIs(name, map[string]any{"const": value}),
			"then": map[string]any{"$ref": mapping[value]},
		})
	}
	if other := mapping["other"]; other != nil {
		all = append(all, map[string]any{
			"if":   propertyIs(name, map[string]any{"enum": listed}),
			"else": map[string]any{"$ref": other},
		})
	}
	delete(schema, "oneOf")
	schema["allOf"] = all
}

// constrainValues adds the forms of the values to a schema with x-values-by-key.
func constrainValues(schema map[string]any, forms []any) {
	properties, ok := schema["x-values-by-key"].([]any)
	if !ok {
		return
	}
	var all []any
	for _, form := range forms {
		form, _ := form.(map[string]any)
		value := map[string]any{
			"if":   map[string]any{"type": "null"},
			"else": form["value"],
		}
		values := map[string]any{}
		for _, property := range properties {
			if name, ok := property.(string); ok {
				values[name] = value
			}
		}
		all = append(all, map[string]any{
			"if":   propertyIs("key", map[string]any{"enum": form["keys"]}),
			"then": map[string]any{"properties": values},
		})
	}
	schema["allOf"] = all
}

func propertyIs(name string, schema map[string]any) map[string]any {
	return map[string]any{
		"properties": map[string]any{name: schema},
		"required":   []any{name},
	}
}
