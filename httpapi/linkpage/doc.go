// Package linkpage serves the description of the hub protocol below /link/: a page for people, made
// from hubbridge/protocol/README.md, and the AsyncAPI document and the JSON Schemas as they are.
//
// The page needs no script, and everything comes from the service itself, which a content security
// policy enforces. Documents may be fetched by pages of other origins, so that viewers of AsyncAPI
// documents in a browser can open them.
package linkpage
