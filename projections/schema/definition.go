package schema

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
)

//go:embed sql/schema.sql
var tables string

//go:embed sql/indexes.sql
var indexes string

//go:embed sql/control.sql
var control string

// Hash returns the SHA-256 of the definition, in hexadecimal digits.
func Hash() string {
	sum := sha256.Sum256([]byte(tables + indexes))
	return hex.EncodeToString(sum[:])
}

// Name returns the name of the schema that holds this program's read models.
func Name() string { return "hubcloud_" + Hash()[:12] }

// StateLive is the recorded state of a schema whose first build is complete.
const StateLive = "live"
