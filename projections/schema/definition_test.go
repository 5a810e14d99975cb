package schema

import "testing"

// The hash names the schema. A program with another hash builds all read models again when it
// starts, on every installation.
func TestHashChangesOnlyOnPurpose(t *testing.T) {
	t.Parallel()
	const want = "197c3d0a66619a597c8a33b3cc2d962c5d39663f2e83e8dddfcfef059971e07b"
	if got := Hash(); got != want {
		t.Errorf("Hash() = %s, want %s: existing read models would be built again", got, want)
	}
}
