package domain

import (
	"regexp"
	"strings"
)

// HubID names a hub: `<prefix>-<4>-<4>-<4>`, lower case. The zero value is no hub.
type HubID string

var hubIDPattern = regexp.MustCompile(`^[a-z][a-z0-9]{1,11}-[a-z0-9]{4}-[a-z0-9]{4}-[a-z0-9]{4}$`)

// ParseHubID takes a hub ID exactly as it is written in the API (lower case, with dashes). Anything
// else is no hub ID.
func ParseHubID(s string) (HubID, bool) {
	if !hubIDPattern.MatchString(s) {
		return "", false
	}
	return HubID(s), true
}

// ParseSerial takes a Serial in any case, with or without dashes, and gives the hub ID of the same
// characters: the last twelve are the three groups, what stands before them is the prefix.
func ParseSerial(s string) (HubID, bool) {
	bare := strings.ToLower(strings.ReplaceAll(s, "-", ""))
	if len(bare) < 14 || len(bare) > 24 {
		return "", false
	}
	prefix, groups := bare[:len(bare)-12], bare[len(bare)-12:]
	return ParseHubID(prefix + "-" + groups[:4] + "-" + groups[4:8] + "-" + groups[8:])
}

// Serial is the same characters in upper case, as printed on the label.
func (h HubID) Serial() string { return strings.ToUpper(string(h)) }
