package address_test

import (
	"testing"

	"hubcloud/cmd/hubcloud/internal/address"
)

func TestLocalURL(t *testing.T) {
	t.Parallel()
	for bound, want := range map[string]string{
		":8080":          "http://localhost:8080",
		"0.0.0.0:8080":   "http://localhost:8080",
		"[::]:8080":      "http://localhost:8080",
		"127.0.0.1:8080": "http://127.0.0.1:8080",
		"[::1]:8080":     "http://[::1]:8080",
	} {
		if got := address.LocalURL(bound); got != want {
			t.Errorf("LocalURL(%q) is %q, want %q", bound, got, want)
		}
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	for _, good := range []string{":0", "localhost:65535", "[::1]:80"} {
		if err := address.Check(good); err != nil {
			t.Errorf("Check(%q): %v", good, err)
		}
	}
	for _, bad := range []string{"", "localhost", "localhost:", "localhost:65536", "::1:mqtt"} {
		if address.Check(bad) == nil {
			t.Errorf("Check(%q) returned no error", bad)
		}
	}
}
