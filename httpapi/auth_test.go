package httpapi

import (
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"hubcloud/domain"
	"hubcloud/streams/shares"
	"hubcloud/streams/streamstest"
)

// Exactly one header, the scheme in any case and the exact key are accepted. Everything else gets
// the same error. FuzzAuthorization and the black-box tests try more values.
func TestAuthorization(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	key := strings.TrimPrefix(s.bearer, "Bearer ")
	var entropy [domain.KeyEntropy]byte
	stranger := domain.NewKey(domain.EnvironmentDev, entropy)
	for name, tt := range map[string]struct {
		values []string
		ok     bool
	}{
		"the key":                    {[]string{"Bearer " + key}, true},
		"scheme in lower case":       {[]string{"bearer " + key}, true},
		"scheme in upper case":       {[]string{"BEARER  " + key}, true},
		"two":                        {[]string{"Bearer " + key, "Bearer " + key}, false},
		"two in one":                 {[]string{"Bearer " + key + ", Bearer " + key}, false},
		"a tab":                      {[]string{"Bearer\t" + key}, false},
		"a word after it":            {[]string{"Bearer " + key + " x"}, false},
		"in another case":            {[]string{"Bearer " + strings.ToUpper(key)}, false},
		"right id with wrong secret": {[]string{"Bearer " + withSecretOf(t, key, stranger)}, false},
	} {
		headers := []string{"Authorization", ""}
		for _, value := range tt.values {
			headers = append(headers, "Authorization", value)
		}
		res := s.do("GET", "/v1/sites", "", headers...)
		want := http.StatusUnauthorized
		if tt.ok {
			want = http.StatusOK
		}
		if res.StatusCode != want {
			t.Errorf("%s: %d, want %d", name, res.StatusCode, want)
		}
		if !tt.ok && res.Header.Get("WWW-Authenticate") != "Bearer" {
			t.Errorf(
				"%s: got WWW-Authenticate %q, want Bearer", name,
				res.Header.Get("WWW-Authenticate"),
			)
		}
	}
	streamstest.Eventually(
		t, "all requests are logged",
		func() bool { return strings.Count(s.logged.String(), "\n") >= 9 },
	)
	if log := s.logged.String(); strings.Contains(log, key[20:]) ||
		!strings.Contains(log, key[7:19]) {
		t.Errorf("got log\n%s\nwant key ids and no secrets", log)
	}
	s.revoke()
	if a := s.do("GET", "/v1/sites", ""); a.StatusCode != http.StatusUnauthorized {
		t.Errorf("revoked key: got %d, want 401", a.StatusCode)
	}
}

// withSecretOf combines one key's id with another key's secret, like an attacker who found ids in
// logs.
func withSecretOf(t *testing.T, key string, other domain.Key) string {
	t.Helper()
	parsed, err := domain.ParseKey(key)
	streamstest.Must(t, err)
	var entropy [domain.KeyEntropy]byte
	for i := range entropy {
		entropy[i] = 1 // as addKey made the id from
		if i >= len(entropy)-4 {
			entropy[i] = 9
		}
	}
	forged := domain.NewKey(domain.EnvironmentDev, entropy)
	if forged.ID != parsed.ID || forged.Secret == parsed.Secret {
		t.Fatalf("got forged key %v of %v, want the same id and another secret", forged, parsed)
	}
	return forged.Reveal()
}

// X-Forwarded-For is trusted from trusted proxies only, and read from the right.
func TestClientAddress(t *testing.T) {
	t.Parallel()
	a := &api{Config: Config{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}}
	for _, tt := range []struct {
		// forwarded has one element for each header line
		remote, forwarded, want string
	}{
		{"192.0.2.1:9", "", "192.0.2.1"},
		{"192.0.2.1:9", "198.51.100.1", "192.0.2.1"},
		{"10.0.0.1:9", "", "10.0.0.1"},
		{"10.0.0.1:9", "198.51.100.1", "198.51.100.1"},
		{"[::ffff:10.0.0.1]:9", "203.0.113.9, 198.51.100.1,10.2.2.2", "198.51.100.1"},
		{"10.0.0.1:9", "198.51.100.1, nonsense", "10.0.0.1"},
		{"10.0.0.1:9", "[2001:db8::1]:8080", "2001:db8::1"},
		{"10.0.0.1:9", "10.2.2.2, 10.3.3.3", "10.2.2.2"},
		{"10.0.0.1:9", "198.51.100.1, , 10.2.2.2", "10.2.2.2"},
		{"10.0.0.1:9", "192.0.2.66\n198.51.100.1\n10.2.2.2", "198.51.100.1"},
		{"10.0.0.1:9", "192.0.2.66,198.51.100.1:443\n10.2.2.2\t, 10.3.3.3", "198.51.100.1"},
		{"192.0.2.1:9", "10.0.0.1\n10.2.2.2", "192.0.2.1"},
		{"nonsense", "198.51.100.1", "invalid IP"},
	} {
		r := &http.Request{
			RemoteAddr: tt.remote,
			Header:     http.Header{"X-Forwarded-For": strings.Split(tt.forwarded, "\n")},
		}
		if got := a.clientAddress(r).String(); got != tt.want {
			t.Errorf("%s with %q: %s, want %s", tt.remote, tt.forwarded, got, tt.want)
		}
	}
	for addr, want := range map[string]string{
		"192.0.2.1": "192.0.2.1/32", "2001:db8:1:2:3::4": "2001:db8:1:2::/64", "": "invalid Prefix",
	} {
		parsed, _ := parseAddress(addr)
		if got := shares.AddressBlock(parsed).String(); got != want {
			t.Errorf("block of %s: got %s, want %s", addr, got, want)
		}
	}
}
