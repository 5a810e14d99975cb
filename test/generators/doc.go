// Package generators generates clients from openapi.yaml with generators that people use, compiles
// them, and runs the same workflow with each against the built binary: lists, a command with a
// color, the event stream, pages of events, and every error that can be brought about from outside.
//
// The generators are pinned: oapi-codegen in go/go.mod, ogen in ogen/go.mod (it gets the OpenAPI 3.2
// document and runs a shorter workflow), openapi-typescript and @hey-api/openapi-ts
// in package-lock.json. The generated code is not kept. `make lint-api` runs what lint/package.json
// pins: two linters, and orval as one more generator.
package generators
