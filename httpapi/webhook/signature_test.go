package webhook

import (
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"hubcloud/streams/streamstest"
)

// The example of the Standard Webhooks specification's libraries.
func TestSignature(t *testing.T) {
	t.Parallel()
	secret, err := ParseSecret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	streamstest.Must(t, err)
	got := signature(
		[]Secret{secret, secret}, "msg_p5jXN8AQM9LWM0D4loKWxJek", time.Unix(1614265330, 0),
		[]byte(`{"test": 2432232314}`),
	)
	const want = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
	if got != want+" "+want {
		t.Errorf("got %s, want %s twice", got, want)
	}
}

// Only secrets of the allowed length are accepted, and no error has a secret in it.
func TestParseSecret(t *testing.T) {
	t.Parallel()
	encoded := func(n int) string {
		return base64.StdEncoding.EncodeToString([]byte(strings.Repeat("k", n)))
	}
	for text, ok := range map[string]bool{
		"whsec_" + encoded(24):                         true,
		"whsec_" + encoded(32):                         true,
		"whsec_" + strings.TrimRight(encoded(32), "="): true,
		"whsec_" + encoded(64):                         true,
		"whsec_" + encoded(65):                         false,
		"whsec_" + encoded(23):                         false,
		encoded(32):                                    false,
		"whsec_":                                       false,
		"whsec_!" + encoded(32):                        false,
		"":                                             false,
	} {
		secret, err := ParseSecret(text)
		if (err == nil) != ok {
			t.Errorf("ParseSecret(%q) = %v, want success %v", text, err, ok)
		}
		if err != nil && len(text) > len(secretPrefix) && strings.Contains(err.Error(), text) ||
			secret.String() != "whsec_…" {
			t.Errorf("%q appears in %v or %v", text, err, secret)
		}
	}
}
