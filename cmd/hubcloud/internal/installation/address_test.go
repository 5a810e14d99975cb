package installation

import "testing"

func TestLocalURL(t *testing.T) {
	t.Parallel()
	for bound, want := range map[string]string{
		":8080":          "http://localhost:8080",
		"0.0.0.0:8080":   "http://localhost:8080",
		"[::]:8080":      "http://localhost:8080",
		"127.0.0.1:8080": "http://127.0.0.1:8080",
		"[::1]:8080":     "http://[::1]:8080",
	} {
		if got := LocalURL(bound); got != want {
			t.Errorf("LocalURL(%q) is %q, want %q", bound, got, want)
		}
	}
}

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
