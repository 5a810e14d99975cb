// Package openapi checks answers of the API against openapi.yaml: status, header fields, bodies,
// and the messages of event streams. A body or message may have only what its schema lists.
package openapi

import (
	"errors"
	"net/url"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// location is the name under which the compiler knows the document.
const location = "openapi.yaml"

// schemas compiles the schemas of a document: draft 2020-12, with `format` and `contentSchema`
// asserted.
type schemas struct{ compiler *jsonschema.Compiler }

func newSchemas(document any) (schemas, error) {
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft2020)
	compiler.AssertFormat()
	compiler.AssertContent()
	return schemas{compiler}, compiler.AddResource(location, document)
}

// compile returns the schema at a JSON pointer into the document.
func (s schemas) compile(pointer string) (schema, error) {
	compiled, err := s.compiler.Compile(
		location + "#" + (&url.URL{Fragment: pointer}).EscapedFragment(),
	)
	if err != nil {
		return nil, err
	}
	return func(value any) error { return withoutLocation(compiled.Validate(value)) }, nil
}

// withoutLocation removes the first line of the library's error, which names the schema by the URL
// of a file that does not exist. A line for each violation is left.
func withoutLocation(err error) error {
	if err == nil {
		return nil
	}
	_, violations, several := strings.Cut(err.Error(), "\n")
	if !several {
		return err
	}
	return errors.New(violations)
}
