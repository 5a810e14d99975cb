package installation

import "testing"

func TestCheckAddress(t *testing.T) {
	t.Parallel()
	for _, good := range []string{":0", "localhost:65535", "[::1]:80"} {
		if err := CheckAddress(good); err != nil {
			t.Errorf("CheckAddress(%q): %v", good, err)
		}
	}
	for _, bad := range []string{"", "localhost", "localhost:", "localhost:65536", "::1:mqtt"} {
		if CheckAddress(bad) == nil {
			t.Errorf("CheckAddress(%q) returned no error", bad)
		}
	}
}
