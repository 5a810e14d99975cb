package schema

import "testing"

// The hash names the schema. A program with another hash builds all read models again when it
// starts, on every installation.
func TestHashChangesOnlyOnPurpose(t *testing.T) {
	t.Parallel()
	const want = "17aa93c3c0df2dc96577742cdb6eb8f059643bd998b2ad65d95d891c3f195335"
	if got := Hash(); got != want {
		t.Errorf("Hash() = %s, want %s: existing read models would be built again", got, want)
	}
}
