package schema

import "testing"

// The hash names the schema. A program with another hash builds all read models again when it
// starts, on every installation.
func TestHashChangesOnlyOnPurpose(t *testing.T) {
	t.Parallel()
	const want = "d107200f49921f8f5b9a4fdd4b1d250d31bd275ab5b73f3074dea188d77de9f3"
	if got := Hash(); got != want {
		t.Errorf("Hash() = %s, want %s: existing read models would be built again", got, want)
	}
}
