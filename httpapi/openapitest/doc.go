// Package openapitest holds answers of the API to its description, openapi.yaml. It is for tests.
//
// The description is held more strictly than clients should hold it: whatever it does not name is
// wrong. A status, a header field or a media type that is not described for the operation fails,
// and so does a field of a body that its schema does not name: every object schema that lists
// properties and does not say `additionalProperties` itself is closed.
//
// Values are validated by a JSON Schema library that the caller of Parse brings along, so that the
// service's module does not depend on one. The black-box tests do so through the package
// test/openapi.
//
// The pages for people, /portal and /v1/reference, are not described and not looked at.
package openapitest
