// Package typescript tests the TypeScript client in httpapi/client/typescript: it holds the
// client's types to openapi.yaml, builds and packs the client, installs the package into an empty
// project, and runs programs with it against the built binary, over restarts, gaps and resets of a
// hub's log.
package typescript
