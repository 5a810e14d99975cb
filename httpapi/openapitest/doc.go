// Package openapitest checks answers of the API against openapi.yaml. It is for tests.
//
// It is stricter than clients should be: everything that the document does not name is an error.
// That includes statuses, header fields and media types that are not described for the operation,
// and fields that are not in the body's schema: object schemas that list properties and do not set
// `additionalProperties` are closed.
//
// The caller of Parse supplies the JSON Schema library, so that the service's module does not
// depend on one. The black-box tests use the package test/openapi.
//
// The pages for people, /portal and /v1/reference, are not described and not checked.
package openapitest
