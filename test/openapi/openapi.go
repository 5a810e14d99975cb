// Package openapi validates answers of the API against openapi.yaml with a JSON Schema library.
// Package openapitest has everything that needs no such library.
package openapi

import (
	"errors"
	"net/url"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"hubcloud/httpapi/openapitest"
)

// Parse reads the documents of a service as one and compiles their schemas: draft 2020-12, with
// `format` and `contentSchema` asserted.
func Parse(texts ...string) (*openapitest.Document, error) {
	return openapitest.Parse(newSchemas, texts...)
}

// location is the name under which the compiler knows the document.
const location = "openapi.yaml"

type schemas struct{ compiler *jsonschema.Compiler }

func newSchemas(document any) (openapitest.Schemas, error) {
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft2020)
	compiler.AssertFormat()
	compiler.AssertContent()
	return schemas{compiler}, compiler.AddResource(location, document)
}

func (s schemas) Compile(pointer string) (openapitest.Schema, error) {
	schema, err := s.compiler.Compile(
		location + "#" + (&url.URL{Fragment: pointer}).EscapedFragment(),
	)
	if err != nil {
		return nil, err
	}
	return func(value any) error { return withoutLocation(schema.Validate(value)) }, nil
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
