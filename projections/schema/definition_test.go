package schema

import "testing"

// The hash names the schema. A program with another hash builds all read models again when it
// starts, on every installation.
func TestHashChangesOnlyOnPurpose(t *testing.T) {
	t.Parallel()
	const want = "6cae9b72e9ba6eafafc3ab49839ad1c59d2a87a12ddafdc282f530346c5972f7"
	if got := Hash(); got != want {
		t.Errorf("Hash() = %s, want %s: existing read models would be built again", got, want)
	}
}
