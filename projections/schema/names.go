package schema

import (
	"crypto/rand"
	"encoding/hex"
	"strings"
	"time"
)

// Infixes of the names of schemas beside the one in use. A suffix follows that makes the name
// unique.
const (
	infixNext   = "_next_"
	infixVerify = "_verify_"
	infixOld    = "_old_"
)

// NextName returns a new name for read models that are to replace those in schema.
func NextName(schema string) string { return schema + infixNext + randomSuffix() }

// VerifyName returns a new name for read models that are compared with those in schema.
func VerifyName(schema string) string { return schema + infixVerify + randomSuffix() }

func randomSuffix() string {
	var random [4]byte
	rand.Read(random[:]) // never fails: it ends the program instead
	return hex.EncodeToString(random[:])
}

// OldName returns the name for the read models of schema that target, a NextName, replaces.
func OldName(schema, target string, now time.Time) string {
	suffix := target[strings.LastIndexByte(target, '_'):]
	return schema + infixOld + now.UTC().Format("20060102t150405") + suffix
}

// IsOld reports whether name is an OldName.
func IsOld(name string) bool { return strings.Contains(name, infixOld) }

// IsUnfinished reports whether name is a NextName or a VerifyName, and returns the schema that it
// was made from.
func IsUnfinished(name string) (schema string, ok bool) {
	if schema, _, ok = strings.Cut(name, infixNext); ok {
		return schema, true
	}
	schema, _, ok = strings.Cut(name, infixVerify)
	return schema, ok
}
