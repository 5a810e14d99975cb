package server

import (
	"fmt"
	"strings"
	"testing"
)

// TestTrustedProxies: networks and single addresses are taken as they are written; what is neither,
// or would trust more or less than it seems to say, is refused by the flag's name.
func TestTrustedProxies(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		given []string
		want  string // "" for a refusal
	}{
		{nil, "[]"},
		{[]string{"10.0.0.0/8", "2001:db8::/32"}, "[10.0.0.0/8 2001:db8::/32]"},
		{[]string{"192.0.2.7", "::1"}, "[192.0.2.7/32 ::1/128]"},
		{[]string{"0.0.0.0/0"}, "[0.0.0.0/0]"},
		{[]string{"10.0.0.1/8"}, ""},
		{[]string{"10.0.0.0/33"}, ""},
		{[]string{"10.0.0/8"}, ""},
		{[]string{"::ffff:10.0.0.0/104"}, ""},
		{[]string{"::ffff:10.0.0.1"}, ""},
		{[]string{"fe80::1%eth0"}, ""},
		{[]string{"proxy.example.org"}, ""},
		{[]string{"10.0.0.0/8", ""}, ""},
	} {
		got, err := (&Config{TrustedProxies: tt.given}).trustedProxies()
		if tt.want == "" {
			if err == nil || !strings.Contains(err.Error(), "--trusted-proxies") {
				t.Errorf("%q: %v, %v", tt.given, got, err)
			}
			continue
		}
		if err != nil || fmt.Sprint(got) != tt.want {
			t.Errorf("%q: %v, %v", tt.given, got, err)
		}
	}
}
