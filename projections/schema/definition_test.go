package schema

import "testing"

// The hash names the schema. A program with another hash builds all read models again when it
// starts, on every installation.
func TestHashChangesOnlyOnPurpose(t *testing.T) {
	t.Parallel()
	const want = "ce97ca47eef4546f7e3c3b2f97b0916fb8e896a9645f73150c6499f3d3553fb4"
	if got := Hash(); got != want {
		t.Errorf("Hash() = %s, want %s: existing read models would be built again", got, want)
	}
}
