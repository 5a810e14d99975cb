package portal

import "testing"

// FuzzParsePosition: every position comes back, and no text is more than a position.
func FuzzParsePosition(f *testing.F) {
	f.Add("{}")
	f.Add("x")
	f.Add(`{"HubID":"hub-7k2m-q4xd-93ta","DeviceID":3,"Key":"lock","Endpoint":1}`)
	f.Fuzz(func(t *testing.T, text string) {
		position := parsePosition(text)
		again := parsePosition(formatPosition(position))
		if again != position {
			t.Errorf("parsePosition(%q): got %+v, then %+v", text, position, again)
		}
	})
}
