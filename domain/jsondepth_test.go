package domain_test

import (
	"testing"

	"hubcloud/domain"
)

func TestJSONDepth(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{
		`1`:                        0,
		`"[[{"`:                    0,
		`[]`:                       1,
		`{"a":[1,{"b":2}],"c":[]}`: 3,
		`["\"[","\\",[0]]`:         2,
	} {
		if got := domain.JSONDepth([]byte(text)); got != want {
			t.Errorf("JSONDepth(%s): got %d, want %d", text, got, want)
		}
	}
}
