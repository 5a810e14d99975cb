package protocol

import (
	"embed"
	"io/fs"
)

//go:embed README.md asyncapi.yaml schemas
var files embed.FS

// Files returns the description of the protocol: README.md, asyncapi.yaml, and a JSON Schema for
// each message in schemas.
func Files() fs.FS { return files }
